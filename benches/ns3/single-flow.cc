// The flow of scenarios/single-flow.toml in ns-3: one CUBIC bulk download, 20 Mbit/s, 100 ms, no loss, 200 s.
//
// Prints one line: goodput in Mbit/s of payload, events that the scheduler executed, seconds of wall time of the run.

#include <chrono>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

int
main(int argc, char* argv[])
{
    double seconds = 200;
    CommandLine command;
    command.AddValue("seconds", "simulated time", seconds);
    command.Parse(argc, argv);

    // A packet of 1,500 IP bytes takes 1,515 bytes at 20 Mbit/s in our scenario; here it takes 1,502, so the rate is lower.
    const uint64_t rate = 20'000'000ull * 1502 / 1515;
    const uint32_t segment = 1448;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4'000'000));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(180 * segment));

    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", StringValue("50ms"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("3000p"));
    NetDeviceContainer devices = link.Install(nodes);
    // The uplink is not the bottleneck.
    devices.Get(1)->SetAttribute("DataRate", StringValue("10Gbps"));

    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // The queue is the device's alone.
    TrafficControlHelper none;
    none.Uninstall(devices);

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80));
    ApplicationContainer receiver = sink.Install(nodes.Get(1));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 80));
    source.SetAttribute("SendSize", UintegerValue(segment));
    ApplicationContainer sender = source.Install(nodes.Get(0));
    receiver.Start(Seconds(0));
    sender.Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const auto started = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    const double bytes = DynamicCast<PacketSink>(receiver.Get(0))->GetTotalRx();
    std::cout << bytes * 8 / 1e6 / seconds << " " << Simulator::GetEventCount() << " " << elapsed.count() << std::endl;
    Simulator::Destroy();
    return 0;
}
