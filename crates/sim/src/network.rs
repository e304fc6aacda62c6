//! Nodes and links, and the loop that moves packets between them.

mod islands;
mod switch;

use paceline_path::{Delivered, Link};
use paceline_wire::{Duration, Instant, Node, Packet, PortId};

use islands::Islands;
use switch::{End, Switch, resolve};

/// A node of a [`Network`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NodeId(u32);

/// A link of a [`Network`], one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LinkId(u32);

/// A switch of a [`Network`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct SwitchId(u32);

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// Into a node, by this port.
    Node(NodeId, PortId),
    /// Onto a link.
    Link(LinkId),
    /// To a switch, which looks at a port number of the packet.
    Switch(SwitchId),
}

/// The port number of a TCP or UDP packet by which a switch chooses the next hop. Hosts behind a switch may share an
/// address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteBy {
    /// The receiver's port.
    DestinationPort,
    /// The sender's port.
    SourcePort,
}

/// Watches a link.
pub trait Tap {
    /// Called when a packet is handed to the link.
    fn sent(&mut self, _now: Instant, _packet: &Packet) {}
    /// Called when a packet has arrived at the other end.
    fn delivered(&mut self, _delivered: &Delivered) {}
    /// True if the tap wants to hear of packets that are [`sent`](Self::sent).
    fn hears_sent(&self) -> bool {
        true
    }
}

/// Nodes, links and the time. `N` is the type of the nodes: an enum of a simulation's kinds of nodes, or a box.
///
/// Events of one time happen in the order in which they were entered. So a run depends on its configuration and seeds
/// alone. Parts of the network that affect each other only after a delay run in turns, each for that delay (see
/// `islands.rs`). So a tap on both sides of a delay may rely on the order of events for one packet only.
pub struct Network<N> {
    began: Instant,
    now: Instant,
    nodes: Vec<NodeSlot<N>>,
    links: Vec<LinkSlot>,
    switches: Vec<Switch>,
    islands: Islands,
    /// True if `islands` fits the present nodes and links.
    divided: bool,
    /// Nodes that were called and may have packets to send.
    called: Vec<NodeId>,
    /// Links that were given packets and must be scheduled.
    fed: Vec<LinkId>,
    /// The packet that a node sends. All nodes share this place, because packets are large.
    outgoing: Packet,
    counts: Counts,
    events_now: u64,
}

/// How a run of the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More events will come.
    Running,
    /// No event is left. Only an action on a node can bring a new one.
    Idle,
    /// A node is due again and again at the same time. This is a fault of that node.
    Stuck,
}

/// The number of events of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets given to nodes, and timers that were due.
    pub events: u64,
    /// Packets without a next hop.
    pub lost_way: u64,
}

struct NodeSlot<N> {
    node: N,
    exits: Vec<Option<Hop>>,
    called: bool,
}

struct LinkSlot {
    link: Link,
    to: Hop,
    taps: Vec<Box<dyn Tap>>,
    /// True if a tap wants to hear of packets that are sent.
    hears_sent: bool,
    fed: bool,
    /// True if the two ends lie on different islands.
    bridges: bool,
    /// True if super-packets cross it as one packet.
    joins: bool,
}

/// A node or a link that can be due.
#[derive(Clone, Copy, Debug)]
enum Actor {
    Node(NodeId),
    Link(LinkId),
}

impl<N> Default for Network<N> {
    fn default() -> Self {
        Network {
            began: Instant::ZERO,
            now: Instant::ZERO,
            nodes: Vec::new(),
            links: Vec::new(),
            switches: Vec::new(),
            islands: Islands::default(),
            divided: false,
            called: Vec::new(),
            fed: Vec::new(),
            outgoing: Packet::default(),
            counts: Counts::default(),
            events_now: 0,
        }
    }
}

impl<N: Node> Network<N> {
    /// Creates an empty network whose time begins at `begins`.
    pub fn beginning_at(begins: Instant) -> Self {
        Network { began: begins, now: begins, ..Network::default() }
    }

    /// Adds a node. When the network runs, it asks the node for packets and its first timeout.
    pub fn add_node(&mut self, node: N) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(NodeSlot { node, exits: Vec::new(), called: false });
        self.divided = false;
        id
    }

    /// Adds a link that leads to `to`.
    pub fn add_link(&mut self, link: Link, to: Hop) -> LinkId {
        let id = LinkId(self.links.len() as u32);
        self.links.push(LinkSlot {
            link,
            to,
            taps: Vec::new(),
            hears_sent: false,
            fed: false,
            bridges: false,
            joins: false,
        });
        self.divided = false;
        id
    }

    /// Adds a switch, which takes no time.
    pub fn add_switch(&mut self, by: RouteBy) -> SwitchId {
        self.switches.push(Switch { by, ways: Vec::new() });
        SwitchId(self.switches.len() as u32 - 1)
    }

    /// Connects a port of `node`: packets that leave by `port` go to `to`.
    pub fn connect(&mut self, node: NodeId, port: PortId, to: Hop) {
        set(&mut self.nodes[node.0 as usize].exits, usize::from(port.0), to);
        self.divided = false;
    }

    /// Sets a way of `switch`: packets with this port number go to `to`.
    pub fn route(&mut self, switch: SwitchId, port: u16, to: Hop) {
        set(&mut self.switches[switch.0 as usize].ways, usize::from(port), to);
        self.divided = false;
    }

    /// Lets `tap` watch `link`.
    pub fn tap(&mut self, link: LinkId, tap: Box<dyn Tap>) {
        let slot = &mut self.links[link.0 as usize];
        slot.hears_sent |= tap.hears_sent();
        slot.taps.push(tap);
    }

    /// Lets super-packets cross `link` as one packet, as if the card at its end joined their segments again. Other links
    /// carry the segments one by one.
    pub fn join_segments(&mut self, link: LinkId) {
        self.links[link.0 as usize].joins = true;
    }

    /// The time at which it began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The time of the last event, or the time to which the network ran.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0 as usize].node
    }

    /// A node to act on. The network asks it for packets when it runs again.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        self.call(id);
        &mut self.nodes[id.0 as usize].node
    }

    /// A link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0 as usize].link
    }

    /// A link to change between two runs of the loop.
    pub fn link_mut(&mut self, id: LinkId) -> &mut Link {
        self.divided = false;
        &mut self.links[id.0 as usize].link
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) -> Progress {
        if !self.divided {
            self.divide();
        }
        self.settle();
        while let Some(first) = self.islands.first().filter(|first| *first <= end) {
            self.take_turns(first.max(self.now), end);
            if self.events_now >= EVENTS_AT_ONE_TIME_MAX {
                return Progress::Stuck;
            }
        }
        self.now = self.now.max(end);
        if self.islands.first().is_none() { Progress::Idle } else { Progress::Running }
    }

    /// Lets every island run from `from`, but not beyond `end`. It stops before anything that another island does can
    /// reach it.
    fn take_turns(&mut self, from: Instant, end: Instant) {
        let until = match self.islands.lag {
            Some(lag) => end.min(from + lag - Duration::from_nanos(1)),
            None => end,
        };
        for slot in self.links.iter_mut().filter(|slot| slot.bridges) {
            slot.link.serve_until(from);
        }
        for island in 0..self.islands.len() {
            self.now = from;
            while self.step(island, until) {}
            if self.events_now >= EVENTS_AT_ONE_TIME_MAX {
                return;
            }
        }
        self.now = until;
    }

    /// Handles the first event of an island, unless it is after `until`.
    fn step(&mut self, island: usize, until: Instant) -> bool {
        let Some((at, actor)) = self.islands.pop(island, until) else { return false };
        self.events_now = if at > self.now { 0 } else { self.events_now + 1 };
        self.now = self.now.max(at);
        match actor {
            Actor::Link(id) => self.deliver(id),
            Actor::Node(id) => self.fire(id),
        }
        self.settle();
        self.events_now < EVENTS_AT_ONE_TIME_MAX
    }

    /// Finds the islands, and schedules all nodes and links anew.
    fn divide(&mut self) {
        self.islands = Islands::find(&self.nodes, &mut self.links, &self.switches);
        for id in (0..self.nodes.len() as u32).map(NodeId) {
            self.call(id);
        }
        for id in (0..self.links.len() as u32).map(LinkId) {
            self.feed(id);
        }
        self.divided = true;
    }

    /// Takes the packets that have arrived from a link.
    fn deliver(&mut self, id: LinkId) {
        // `settle` starts at the end of `fed`: it schedules this link after the links that its packets go onto.
        self.feed(id);
        let Network { now, nodes, links, switches, called, fed, counts, .. } = self;
        let Some((LinkSlot { link, to, taps, bridges, .. }, mut others)) = Others::of(links, id) else {
            return;
        };
        if !*bridges {
            link.serve_until(*now);
        }
        link.arrive_by_ref(*now, &mut |delivered| {
            counts.events += 1;
            for tap in taps.iter_mut() {
                tap.delivered(delivered);
            }
            match resolve(switches, *to, &delivered.packet) {
                Some(End::Node(node, port)) => {
                    let slot = &mut nodes[node.0 as usize];
                    slot.node.handle_borrowed(delivered.at, port, &delivered.packet);
                    if !std::mem::replace(&mut slot.called, true) {
                        called.push(node);
                    }
                }
                Some(End::Link(next)) => match others.get(next) {
                    Some(slot) => slot.fed_by(fed, next).send(*now, &delivered.packet),
                    None => counts.lost_way += 1,
                },
                None => counts.lost_way += 1,
            }
        });
    }

    fn fire(&mut self, id: NodeId) {
        let slot = &mut self.nodes[id.0 as usize];
        if slot.node.poll_timeout().is_some_and(|at| at <= self.now) {
            self.counts.events += 1;
            slot.node.handle_timeout(self.now);
        }
        self.call(id);
    }

    /// Sends all packets of the called nodes, and schedules these nodes and the links that were given packets.
    fn settle(&mut self) {
        let mut next = 0;
        while let Some(&id) = self.called.get(next) {
            next += 1;
            self.nodes[id.0 as usize].called = false;
            while let Some(exit) = self.transmit(id) {
                self.transmit_oddly(exit);
            }
            if let Some(at) = self.nodes[id.0 as usize].node.poll_timeout() {
                self.islands.schedule_node(id, at.max(self.now));
            }
        }
        self.called.clear();
        while let Some(id) = self.fed.pop() {
            let slot = &mut self.links[id.0 as usize];
            slot.fed = false;
            if let Some(at) = slot.link.next_event() {
                self.islands.schedule_link(id, at.max(self.now));
            }
        }
    }

    /// Moves a node's packets onto links. A super-packet, or a packet to a node or switch, stays in `outgoing`; its
    /// exit is returned.
    #[inline]
    fn transmit(&mut self, from: NodeId) -> Option<Option<Hop>> {
        let Network { now, nodes, links, fed, outgoing, .. } = self;
        let slot = &mut nodes[from.0 as usize];
        while let Some(port) = slot.node.transmit_into(*now, outgoing) {
            match slot.exits.get(usize::from(port.0)).copied().flatten() {
                Some(Hop::Link(link)) if outgoing.gso_size().is_none() => {
                    links[link.0 as usize].fed_by(fed, link).send(*now, outgoing);
                }
                exit => return Some(exit),
            }
        }
        None
    }

    /// Moves the packet that `transmit` left in `outgoing`.
    fn transmit_oddly(&mut self, exit: Option<Hop>) {
        let Network { now, nodes, links, switches, fed, outgoing, .. } = self;
        match exit.and_then(|to| resolve(switches, to, outgoing)) {
            None => self.counts.lost_way += 1,
            Some(End::Node(node, port)) => {
                self.counts.events += 1;
                nodes[node.0 as usize].node.handle_borrowed(*now, port, outgoing);
                self.call(node);
            }
            Some(End::Link(link)) => {
                let slot = links[link.0 as usize].fed_by(fed, link);
                match outgoing.gso_size() {
                    Some(_) if !slot.joins => {
                        outgoing.clone().segments().for_each(|segment| slot.send(*now, &segment))
                    }
                    _ => slot.send(*now, outgoing),
                }
            }
        }
    }

    fn call(&mut self, id: NodeId) {
        let slot = &mut self.nodes[id.0 as usize];
        if !std::mem::replace(&mut slot.called, true) {
            self.called.push(id);
        }
    }

    fn feed(&mut self, id: LinkId) {
        self.links[id.0 as usize].fed_by(&mut self.fed, id);
    }
}

/// All links but one.
struct Others<'a> {
    before: &'a mut [LinkSlot],
    after: &'a mut [LinkSlot],
}

impl<'a> Others<'a> {
    /// A link and the others.
    fn of(links: &'a mut [LinkSlot], id: LinkId) -> Option<(&'a mut LinkSlot, Others<'a>)> {
        let (before, rest) = links.split_at_mut(id.0 as usize);
        let (slot, after) = rest.split_first_mut()?;
        Some((slot, Others { before, after }))
    }

    /// `None` for the link itself: a link that leads to itself leads nowhere.
    fn get(&mut self, id: LinkId) -> Option<&mut LinkSlot> {
        let (id, own) = (id.0 as usize, self.before.len());
        if id < own { self.before.get_mut(id) } else { self.after.get_mut(id.checked_sub(own + 1)?) }
    }
}

impl LinkSlot {
    /// Notes that the link is given packets, so that `settle` schedules it.
    #[inline]
    fn fed_by(&mut self, fed: &mut Vec<LinkId>, id: LinkId) -> &mut LinkSlot {
        if !std::mem::replace(&mut self.fed, true) {
            fed.push(id);
        }
        self
    }

    #[inline]
    fn send(&mut self, now: Instant, packet: &Packet) {
        if self.hears_sent {
            for tap in &mut self.taps {
                tap.sent(now, packet);
            }
        }
        self.link.send_copy(now, packet);
    }
}

fn set(hops: &mut Vec<Option<Hop>>, index: usize, to: Hop) {
    if hops.len() <= index {
        hops.resize(index + 1, None);
    }
    hops[index] = Some(to);
}

/// Our choice: no node has a burst of this length.
const EVENTS_AT_ONE_TIME_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests;
