//! Islands: parts of a network that hear of each other only after a delay, and so may go on by turns.
//!
//! What leaves an island over a link arrives on the other one at least the link's propagation delay later. Until then both
//! can be simulated one after the other, and the result is the same as if they had been simulated event by event
//! (conservative synchronisation with bounded lag: Lubachevsky, "Efficient distributed event-driven simulations of
//! multiple-loop networks", Communications of the ACM 32(1), 1989). We do it on one core for the sake of its caches: a
//! sender's and a receiver's code do not fit into the first-level cache together.

use paceline_wire::{Duration, Instant};

use super::{Actor, Hop, LinkId, LinkSlot, NodeId, NodeSlot, Switch};
use crate::queue::EventQueue;

/// The islands of a network, with what is due on each.
#[derive(Default)]
pub(super) struct Islands {
    islands: Vec<Island>,
    nodes: Vec<Place>,
    /// Where links deliver.
    links: Vec<Place>,
    /// How long each may go on without hearing from the others; `None` if there is but one.
    pub(super) lag: Option<Duration>,
}

#[derive(Default)]
struct Island {
    queue: EventQueue,
    actors: Vec<Actor>,
}

/// An island, and an actor's number there.
#[derive(Clone, Copy, Default)]
struct Place {
    island: u32,
    actor: u32,
}

impl Islands {
    /// Divides a network so that the islands may go on as long as possible, and tells links whether they are bridges.
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

    /// All in one.
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

    /// When anything is due.
    pub(super) fn first(&mut self) -> Option<Instant> {
        self.islands.iter_mut().filter_map(|island| island.queue.first()).min()
    }

    /// Takes who is due first on an island, if that is not after `until`.
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

/// Who hears of whom at once: disjoint sets of nodes, of links' two ends and of switches.
struct Groups {
    parents: Vec<usize>,
    nodes: usize,
    links: usize,
}

impl Groups {
    /// Links of at least this delay keep their ends apart.
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

    /// Where packets go into a link.
    fn entry(&self, link: usize) -> usize {
        self.nodes + 2 * link
    }

    /// Where they come out.
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
