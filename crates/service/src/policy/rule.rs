//! One rule of the file, compiled to the gateway's rules.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use paceline_gateway::Prefix;
use paceline_gateway::config::{
    FlowAction, FlowMatch, FlowMode, FlowRule, Prefer, ShareConfig, SubscriberRule,
};
use paceline_gateway::split::SenderConfig;
use serde::Deserialize;
use toml::Spanned;

use super::words::Words;
use super::{RULES_MAX, Wrong, too_many};
use crate::toml_text::nearest;
use crate::units::{Rate, Size, Time};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(rename = "name")]
    _name: Option<String>,
    client: Option<Spanned<Words>>,
    server: Option<Spanned<Words>>,
    port: Option<Spanned<Words>>,
    dscp: Option<Spanned<Words>>,
    vlan: Option<Spanned<Words>>,
    interface: Option<Spanned<Words>>,
    rtt: Option<Spanned<String>>,
    mode: Option<Mode>,
    profile: Option<Spanned<String>>,
    virtual_window: Option<Spanned<Size>>,
    weight: Option<u32>,
    priority: Option<u8>,
    guaranteed: Option<Rate>,
    ceiling: Option<Rate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Subscriber {
    client: Spanned<Words>,
    weight: Option<u32>,
    priority: Option<u8>,
    guaranteed: Option<Rate>,
    ceiling: Option<Rate>,
    prefer: Option<Prefer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Transparent,
    Split,
    Auto,
    Pass,
}

impl Rule {
    pub(super) fn matches_all(&self) -> bool {
        // Every key is named, so that the compiler reports a new one that is missing here.
        let Rule {
            client,
            server,
            port,
            dscp,
            vlan,
            interface,
            rtt,
            _name: _,
            mode: _,
            profile: _,
            virtual_window: _,
            weight: _,
            priority: _,
            guaranteed: _,
            ceiling: _,
        } = self;
        let words = [client, server, port, dscp, vlan, interface];
        words.iter().all(|key| key.is_none()) && rtt.is_none()
    }

    /// True if the rule is for a gateway on these interfaces. Without known interfaces, true.
    pub(super) fn is_about(&self, interfaces: &[&str]) -> Result<bool, Wrong> {
        let Some(wanted) = &self.interface else { return Ok(true) };
        let wanted = &wanted.as_ref().0;
        Ok(interfaces.is_empty() || wanted.iter().any(|name| interfaces.contains(&name.as_str())))
    }

    /// Returns a gateway's rule for each combination of the listed values.
    pub(super) fn compile(
        &self,
        start: usize,
        profiles: &BTreeMap<String, SenderConfig>,
        default: FlowMode,
    ) -> Result<Vec<FlowRule>, Wrong> {
        self.check_meaning(start, default)?;
        let sender = match &self.profile {
            Some(name) => Some(find(profiles, name)?),
            None => None,
        };
        let action = match self.mode {
            None => FlowAction::Accelerate,
            Some(Mode::Transparent) => FlowAction::Transparent,
            Some(Mode::Split) => FlowAction::Split,
            Some(Mode::Auto) => FlowAction::Auto,
            Some(Mode::Pass) => FlowAction::Pass,
        };
        let share = share(start, self.weight, self.priority, self.guaranteed, self.ceiling)?;
        let virtual_window_max_bytes = window(self.virtual_window.as_ref())?;
        let clients = each(self.client.as_ref(), |text| text.parse::<Prefix>())?;
        let servers = each(self.server.as_ref(), |text| text.parse::<Prefix>())?;
        let ports = each(self.port.as_ref(), ports)?;
        let dscps = each(self.dscp.as_ref(), dscp)?;
        let vlans = each(self.vlan.as_ref(), vlan)?;
        let (rtt_min_ms, rtt_max_ms) = rtt(self.rtt.as_ref())?;
        let lengths = [clients.len(), servers.len(), ports.len(), dscps.len(), vlans.len()];
        let combinations = lengths.into_iter().try_fold(1, usize::checked_mul);
        if combinations.is_none_or(|combinations| combinations > RULES_MAX) {
            return Err(too_many(start));
        }
        let mut rules = Vec::new();
        for client in &clients {
            for server in &servers {
                for port in &ports {
                    for dscp in &dscps {
                        for vlan in &vlans {
                            let matches = FlowMatch {
                                client: *client,
                                server: *server,
                                server_ports: port.clone(),
                                dscp: *dscp,
                                vlan: *vlan,
                                rtt_min_ms,
                                rtt_max_ms,
                            };
                            let rule = FlowRule {
                                matches,
                                action,
                                share: share.clone(),
                                sender,
                                virtual_window_max_bytes,
                            };
                            rules.push(rule);
                        }
                    }
                }
            }
        }
        Ok(rules)
    }

    /// Refuses keys that have no effect in the rule's mode.
    fn check_meaning(&self, start: usize, default: FlowMode) -> Result<(), Wrong> {
        let is_split = match self.mode {
            Some(mode) => mode == Mode::Split,
            None => default == FlowMode::Split,
        };
        let window = self.virtual_window.is_some();
        let shares = self.weight.is_some()
            || self.priority.is_some()
            || self.guaranteed.is_some()
            || self.ceiling.is_some();
        let what = match self.mode {
            Some(Mode::Pass) if window => "`virtual-window` has no effect on flows that pass; remove it",
            Some(Mode::Pass) if shares => {
                "weight, priority, guaranteed rate and ceiling have no effect on flows that pass; remove them"
            }
            Some(Mode::Pass) if self.profile.is_some() => {
                "`profile` has no effect on flows that pass; remove it"
            }
            _ if self.profile.is_some() && !is_split => {
                "`profile` works on split flows only; add mode = \"split\", or remove it"
            }
            _ if is_split && window => {
                "`virtual-window` works on transparent flows only; split.receive-window-bytes bounds all split flows; remove it"
            }
            _ => return Ok(()),
        };
        Err((start, what.into()))
    }
}

impl Subscriber {
    pub(super) fn compile(&self, start: usize) -> Result<Vec<SubscriberRule>, Wrong> {
        let share = share(start, self.weight, self.priority, self.guaranteed, self.ceiling)?;
        if share == ShareConfig::default() && self.prefer.is_none() {
            return Err((
                start,
                "it says nothing about the subscriber; add a key, such as weight = 2".into(),
            ));
        }
        let prefixes = each(Some(&self.client), |text| text.parse::<Prefix>())?;
        Ok(prefixes
            .into_iter()
            .flatten()
            .map(|address| SubscriberRule { address, share: share.clone(), prefer: self.prefer })
            .collect())
    }
}

/// Builds a share. Missing keys have the gateway's defaults.
fn share(
    start: usize,
    weight: Option<u32>,
    priority: Option<u8>,
    guaranteed: Option<Rate>,
    ceiling: Option<Rate>,
) -> Result<ShareConfig, Wrong> {
    let default = ShareConfig::default();
    let share = ShareConfig {
        weight: weight.unwrap_or(default.weight),
        priority: priority.unwrap_or(default.priority),
        guaranteed_mbps: guaranteed.map(|rate| rate.to_wire().as_mbps()),
        ceiling_mbps: ceiling.map(|rate| rate.to_wire().as_mbps()),
    };
    share.check().map_err(|what| (start, what))?;
    Ok(share)
}

/// Parses each word. Without words, returns one `None`, which matches all.
fn each<T>(
    words: Option<&Spanned<Words>>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<Option<T>>, Wrong> {
    let Some(words) = words else { return Ok(vec![None]) };
    let one = |text: &String| parse(text).map(Some).map_err(|what| (words.span().start, what));
    words.as_ref().0.iter().map(one).collect()
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    let range = match text.split_once('-') {
        Some((first, last)) => port(first).zip(port(last)).filter(|(first, last)| first <= last),
        None => port(text).map(|port| (port, port)),
    };
    range
        .map(|(first, last)| first..=last)
        .ok_or_else(|| format!("`{text}` is not a port; write 443, or \"8000-8999\""))
}

/// Parses a DSCP, by number or by a name of RFC 2474, 2597, 3246 and 5865.
fn dscp(text: &str) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    let digit = |index: usize, allowed: RangeInclusive<u8>| {
        lower
            .as_bytes()
            .get(index)
            .map(|byte| byte.wrapping_sub(b'0'))
            .filter(|digit| allowed.contains(digit))
    };
    let named = match (lower.as_str(), lower.len()) {
        ("ef", _) => Some(46),
        ("voice-admit", _) => Some(44),
        ("default" | "be", _) => Some(0),
        (name, 3) if name.starts_with("cs") => digit(2, 0..=7).map(|class| class * 8),
        (name, 4) if name.starts_with("af") => {
            digit(2, 1..=4).zip(digit(3, 1..=3)).map(|(class, drop)| class * 8 + drop * 2)
        }
        _ => text.parse().ok().filter(|value| *value < 64),
    };
    named.ok_or_else(|| {
        format!("`{text}` is not a DSCP; write 0 to 63, or a name such as \"ef\", \"af41\", \"cs1\"")
    })
}

/// Parses the smallest and the largest round trip, in milliseconds: `">200ms"`, `"<50ms"` or `"50ms-200ms"`.
fn rtt(text: Option<&Spanned<String>>) -> Result<(Option<u64>, Option<u64>), Wrong> {
    let Some(text) = text else { return Ok((None, None)) };
    let time = |text: &str| {
        let time: Option<Time> = toml::Value::String(text.trim().into()).try_into().ok();
        time.map(|time| time.to_wire().as_millis())
    };
    let value = text.as_ref().trim();
    let parsed = match (value.strip_prefix('>'), value.strip_prefix('<'), value.split_once('-')) {
        (Some(least), ..) => time(least).map(|least| (Some(least), None)),
        (_, Some(most), _) => time(most).map(|most| (None, Some(most))),
        (.., Some((least, most))) => {
            let range = time(least).zip(time(most)).filter(|(least, most)| least <= most);
            range.map(|(least, most)| (Some(least), Some(most)))
        }
        _ => None,
    };
    parsed.ok_or_else(|| {
        let what =
            format!("`{value}` is not a round-trip time; write \">200ms\", \"<50ms\" or \"50ms-200ms\"");
        (text.span().start, what)
    })
}

fn vlan(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|number| (1..4095).contains(number))
        .ok_or_else(|| format!("`{text}` is not a VLAN; write 1 to 4094"))
}

fn window(size: Option<&Spanned<Size>>) -> Result<Option<u64>, Wrong> {
    let Some(size) = size else { return Ok(None) };
    match size.as_ref().bytes() {
        // RFC 7323, Section 2.3: a window below one unit of the largest scale may be shown as zero for ever.
        bytes @ 16_384..=1_073_741_824 => Ok(Some(bytes)),
        _ => Err((size.span().start, "`virtual-window` must be \"16kib\" to \"1gib\"".into())),
    }
}

fn find(profiles: &BTreeMap<String, SenderConfig>, name: &Spanned<String>) -> Result<SenderConfig, Wrong> {
    let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
    profiles.get(name.as_ref()).copied().ok_or_else(|| {
        let hint = match nearest(name.as_ref(), &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write it as a table [profile.{}]", name.as_ref()),
        };
        (name.span().start, format!("there is no profile `{}`; {hint}", name.as_ref()))
    })
}
