//! Islands: parts of a network that affect each other only after a delay, and so may run in turns.
//!
//! A packet that leaves an island over a link arrives on the other one at least the link's propagation delay later.
//! Until then both islands can be simulated one after the other. The result is the same as if they were simulated event
//! by event. This is conservative synchronisation with bounded lag (Lubachevsky, "Efficient distributed event-driven
//! simulations of multiple-loop networks", Communications of the ACM 32(1), 1989). We do it on one core for the sake of
//! its caches. A sender's and a receiver's code do not fit into the first-level cache together.

use paceline_wire::{Duration, Instant};

use super::{Actor, Hop, LinkId, LinkSlot, NodeId, NodeSlot, Switch};
use crate::queue::EventQueue;

/// The islands of a network, each with its event queue.
#[derive(Default)]
pub(super) struct Islands {
    islands: Vec<Island>,
    nodes: Vec<Place>,
    /// Places of the links' receiving ends.
    links: Vec<Place>,
    /// Time that an island may run without hearing from the others; `None` if there is only one.
    pub(super) lag: Option<Duration>,
}

#[derive(Default)]
struct Island {
    queue: EventQueue,
    actors: Vec<Actor>,
}

/// An island, and an actor's number on it.
#[derive(Clone, Copy, Default)]
struct Place {
    island: u32,
    actor: u32,
}

impl Islands {
    /// Divides a network so that the islands may run as long as possible. Marks the links that are bridges.
    pub(super) fn find<N>(nodes: &[NodeSlot<N>], links: &mut [LinkSlot], switches: &[Switch]) -> Islands {
        let mut delays: Vec<Duration> = links.iter().map(|slot| slot.link.least_delay()).collect();
        delays.sort_unstable();
        delays.dedup();
        let divided = delays.iter().rev().filter(|lag| !lag.is_zero()).find_map(|&lag| {
            let mut groups = Groups::of(nodes, links, switches, lag);
            let bridges: Vec<bool> = (0..links.len()).map(|link| groups.is_bridge(link)).collect();
            bridges.contains(&true).then_some((groups, bridges, lag))
        });
        let Some((groups, bridges, lag)) = divided else { return Islands::whole(nodes, links) };
        for (slot, bridges) in links.iter_mut().zip(bridges) {
            slot.bridges = bridges;
        }
        Islands::new(groups, Some(lag))
    }

    /// Puts everything on one island.
    pub(super) fn whole<N>(nodes: &[NodeSlot<N>], links: &mut [LinkSlot]) -> Islands {
        links.iter_mut().for_each(|slot| slot.bridges = false);
        let count = nodes.len() + 2 * links.len();
        Islands::new(Groups { parents: vec![0; count], nodes: nodes.len(), links: links.len() }, None)
    }

    fn new(mut groups: Groups, lag: Option<Duration>) -> Islands {
        let mut islands = Islands { lag, ..Islands::default() };
        let mut by_root = vec![None; groups.parents.len()];
        let (nodes, links) = (groups.nodes, groups.links);
        for node in 0..nodes {
            let root = groups.root(node);
            let place = islands.settle(&mut by_root[root], Actor::Node(NodeId(node as u32)));
            islands.nodes.push(place);
        }
        for link in 0..links {
            let root = groups.root(groups.exit(link));
            let place = islands.settle(&mut by_root[root], Actor::Link(LinkId(link as u32)));
            islands.links.push(place);
        }
        islands
    }

    fn settle(&mut self, island: &mut Option<u32>, actor: Actor) -> Place {
        let island = *island.get_or_insert_with(|| {
            self.islands.push(Island::default());
            self.islands.len() as u32 - 1
        });
        let Island { queue, actors } = &mut self.islands[island as usize];
        let number = actors.len() as u32;
        actors.push(actor);
        queue.add_actor(number);
        Place { island, actor: number }
    }

    pub(super) fn len(&self) -> usize {
        self.islands.len()
    }

    /// The time of the first event on any island.
    pub(super) fn first(&mut self) -> Option<Instant> {
        self.islands.iter_mut().filter_map(|island| island.queue.first()).min()
    }

    /// Takes the first actor that is due on an island, unless it is due after `until`.
    #[inline]
    pub(super) fn pop(&mut self, island: usize, until: Instant) -> Option<(Instant, Actor)> {
        let Island { queue, actors } = &mut self.islands[island];
        queue.pop(until).map(|(at, actor)| (at, actors[actor as usize]))
    }

    #[inline]
    pub(super) fn schedule_node(&mut self, node: NodeId, at: Instant) {
        self.schedule(self.nodes[node.0 as usize], at);
    }

    #[inline]
    pub(super) fn schedule_link(&mut self, link: LinkId, at: Instant) {
        self.schedule(self.links[link.0 as usize], at);
    }

    #[inline]
    fn schedule(&mut self, place: Place, at: Instant) {
        self.islands[place.island as usize].queue.schedule(place.actor, at);
    }
}

/// Disjoint sets of nodes, link ends and switches. The members of a set affect each other without delay.
struct Groups {
    parents: Vec<usize>,
    nodes: usize,
    links: usize,
}

impl Groups {
    /// Finds the sets. Only a link of at least `delay` keeps its two ends apart.
    fn of<N>(nodes: &[NodeSlot<N>], links: &[LinkSlot], switches: &[Switch], delay: Duration) -> Groups {
        let count = nodes.len() + 2 * links.len() + switches.len();
        let mut groups = Groups { parents: (0..count).collect(), nodes: nodes.len(), links: links.len() };
        for (node, slot) in nodes.iter().enumerate() {
            for hop in slot.exits.iter().flatten() {
                groups.join(node, groups.of_hop(*hop));
            }
        }
        for (link, slot) in links.iter().enumerate() {
            groups.join(groups.exit(link), groups.of_hop(slot.to));
            if slot.link.least_delay() < delay {
                groups.join(groups.entry(link), groups.exit(link));
            }
        }
        for (switch, slot) in switches.iter().enumerate() {
            for hop in slot.ways.iter().flatten() {
                groups.join(groups.switch(switch), groups.of_hop(*hop));
            }
        }
        groups
    }

    fn is_bridge(&mut self, link: usize) -> bool {
        self.root(self.entry(link)) != self.root(self.exit(link))
    }

    fn of_hop(&self, hop: Hop) -> usize {
        match hop {
            Hop::Node(node, _) => node.0 as usize,
            Hop::Link(link) => self.entry(link.0 as usize),
            Hop::Switch(switch) => self.switch(switch.0 as usize),
        }
    }

    /// The end where packets enter a link.
    fn entry(&self, link: usize) -> usize {
        self.nodes + 2 * link
    }

    /// The end where packets leave a link.
    fn exit(&self, link: usize) -> usize {
        self.nodes + 2 * link + 1
    }

    fn switch(&self, switch: usize) -> usize {
        self.nodes + 2 * self.links + switch
    }

    fn root(&mut self, mut of: usize) -> usize {
        while self.parents[of] != of {
            self.parents[of] = self.parents[self.parents[of]];
            of = self.parents[of];
        }
        of
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}
