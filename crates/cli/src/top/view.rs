//! The content of the screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, TableState};

use super::table::{FLOW_COLUMNS, SUBSCRIBER_COLUMNS, Traffic, sort};
use crate::flows::{number, span};
use paceline_service::rows::Report;

/// The displayed table, its order, and its first row.
#[derive(Debug)]
pub(super) struct View {
    traffic: Option<Traffic>,
    complaint: Option<String>,
    shows_subscribers: bool,
    /// Sort columns of flows and of subscribers.
    columns: [usize; 2],
    reversed: bool,
    first: usize,
}

impl Default for View {
    fn default() -> Self {
        // The column of the downlink rate: the busiest flow comes first.
        let columns = [3, 3];
        View { traffic: None, complaint: None, shows_subscribers: false, columns, reversed: false, first: 0 }
    }
}

impl View {
    pub(super) fn show(&mut self, traffic: Traffic) {
        (self.traffic, self.complaint) = (Some(traffic), None);
    }

    pub(super) fn complain(&mut self, complaint: String) {
        self.complaint = Some(complaint);
    }

    pub(super) fn latest(&self) -> Option<&Report> {
        self.traffic.as_ref().map(|traffic| &traffic.report)
    }

    pub(super) fn next_table(&mut self) {
        (self.shows_subscribers, self.first) = (!self.shows_subscribers, 0);
    }

    pub(super) fn sort_by_next(&mut self, to_the_right: bool) {
        let count = self.names().len();
        let column = &mut self.columns[usize::from(self.shows_subscribers)];
        *column = (*column + if to_the_right { 1 } else { count - 1 }) % count;
    }

    pub(super) fn reverse(&mut self) {
        self.reversed = !self.reversed;
    }

    pub(super) fn scroll(&mut self, rows: isize) {
        self.first = self.first.saturating_add_signed(rows);
    }

    fn names(&self) -> &'static [&'static str] {
        if self.shows_subscribers { &SUBSCRIBER_COLUMNS } else { &FLOW_COLUMNS }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([Constraint::Length(2), Constraint::Min(3), Constraint::Length(1)]);
        let [head, body, foot] = areas.areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        self.draw_table(frame, body);
        let keys = " q quit   Tab flows/subscribers   \u{2190} \u{2192} sort by   r reverse   \u{2191} \u{2193} scroll";
        frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let Some(traffic) = &self.traffic else { return Vec::new() };
        let report = &traffic.report;
        let first = format!(
            " {} \u{2194} {}   up {}   flows {}   subscribers {}   down {} Mbit/s   up {} Mbit/s",
            report.wan,
            report.radio,
            span(report.uptime_s),
            report.flows.len(),
            report.subscribers.len(),
            number(Some(traffic.down_mbps)),
            number(Some(traffic.up_mbps)),
        );
        let first = Line::from(Span::styled(first, Style::new().add_modifier(Modifier::BOLD)));
        match &self.complaint {
            Some(complaint) => {
                vec![first, Line::from(Span::styled(format!(" {complaint}"), Style::new().fg(Color::Red)))]
            }
            None => vec![first],
        }
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: ratatui::layout::Rect) {
        let column = self.columns[usize::from(self.shows_subscribers)];
        let (names, texts) = (self.names(), if self.shows_subscribers { 1 } else { 3 });
        let Some(traffic) = &mut self.traffic else { return };
        let rows = if self.shows_subscribers { &mut traffic.subscribers } else { &mut traffic.flows };
        sort(rows, column, self.reversed);
        let page = usize::from(area.height.saturating_sub(1));
        self.first = self.first.min(rows.len().saturating_sub(page));
        let mark = if self.reversed { "\u{25b2}" } else { "\u{25bc}" };
        let title = |(index, name): (usize, &&str)| {
            if index == column { format!("{mark}{name}") } else { (*name).to_owned() }
        };
        let titles: Vec<String> = names.iter().enumerate().map(title).collect();
        let shown = &rows[self.first..rows.len().min(self.first + page)];
        let widths: Vec<usize> = titles
            .iter()
            .enumerate()
            .map(|(index, title)| {
                let widest =
                    shown.iter().filter_map(|row| row.get(index)).map(|cell| cell.text.chars().count()).max();
                widest.unwrap_or(0).max(title.chars().count())
            })
            .collect();
        // Numbers are right-aligned.
        let align = |index: usize, text: &str| {
            if index < texts { text.to_owned() } else { format!("{text:>width$}", width = widths[index]) }
        };
        let header = Row::new(titles.iter().enumerate().map(|(index, title)| align(index, title)))
            .style(Style::new().add_modifier(Modifier::REVERSED));
        let lines = shown
            .iter()
            .map(|row| Row::new(row.iter().enumerate().map(|(index, cell)| align(index, &cell.text))));
        let widths = widths.iter().map(|width| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
        let table = Table::new(lines, widths).header(header).column_spacing(2);
        frame.render_stateful_widget(table, area, &mut TableState::default());
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use paceline_service::rows::{FlowRow, FlowTotalsRow, SCHEMA, SubscriberRow};

    fn flow(index: u16, megabytes: u64) -> FlowRow {
        FlowRow {
            client: ([10, 0, 0, 2], 40_000 + index).into(),
            server: ([192, 0, 2, 1], 443).into(),
            subscriber: "10.0.0.2".into(),
            mode: "transparent".into(),
            reason: None,
            stage: "open".into(),
            age_s: 60.0,
            idle_s: 59.0,
            weight: 1,
            rescaled: true,
            gave_up: false,
            rtt_ms: Some(101.5),
            rtt_min_ms: None,
            server_rtt_ms: None,
            rate_mbps: Some(7.2),
            client_window_bytes: 65_536,
            in_flight_bytes: 60_000,
            waiting_bytes: 3_000,
            buffered_bytes: 63_000,
            ack_delay_ms: 0.0,
            totals: FlowTotalsRow {
                downlink_bytes: megabytes * 1_000_000,
                uplink_bytes: 0,
                mean_wait_ms: 2.5,
                retransmissions: 0,
                retransmitted_bytes: 20_000 * u64::from(index),
                server_retransmissions: 0,
                lost_bytes: 0,
                timeouts: 0,
            },
        }
    }

    fn subscriber() -> SubscriberRow {
        SubscriberRow {
            subscriber: "10.0.0.2".into(),
            flows: 2,
            weight: 1,
            in_flight_bytes: 120_000,
            limit_bytes: Some(150_000),
            rate_mbps: Some(9.6),
            rtt_min_ms: Some(100.0),
            other_downlink_bytes: 7_000,
            other_uplink_bytes: 500,
            other_waiting_bytes: 0,
        }
    }

    fn report(uptime_s: f64, [first, second]: [u64; 2]) -> Report {
        Report {
            schema: SCHEMA,
            program: "paceline".into(),
            wan: "eth1".into(),
            radio: "eth2".into(),
            uptime_s,
            absent: None,
            flows: vec![flow(0, first), flow(1, second)],
            subscribers: vec![subscriber()],
        }
    }

    fn screen(view: &mut View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(132, 8)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn viewed() -> View {
        let mut view = View::default();
        view.show(Traffic::between(Some(&report(60.0, [1, 1])), report(62.0, [2, 4])));
        view
    }

    #[test]
    fn flows_are_shown_with_the_busiest_first() {
        insta::assert_snapshot!(screen(&mut viewed()));
    }

    #[test]
    fn another_table_and_another_order_are_a_key_away() {
        let mut view = viewed();
        view.reverse();
        let lines: Vec<String> = screen(&mut view).lines().map(str::to_owned).collect();
        assert!(lines[3].contains(":40000") && lines[4].contains(":40001"));
        view.reverse();
        view.sort_by_next(false);
        view.sort_by_next(false);
        view.sort_by_next(false);
        assert!(screen(&mut view).contains("\u{25bc}client"));
        view.next_table();
        view.scroll(100);
        insta::assert_snapshot!(screen(&mut view));
        view.complain("no gateway answers".into());
        assert!(screen(&mut view).contains("no gateway answers"));
    }

    #[test]
    fn without_an_earlier_report_rates_are_zero() {
        let traffic = Traffic::between(None, report(5.0, [7, 7]));
        assert_eq!((traffic.down_mbps, traffic.up_mbps), (0.0, 0.0));
        // The gateway was started again in between.
        let traffic = Traffic::between(Some(&report(60.0, [9, 9])), report(1.0, [7, 7]));
        assert_eq!(traffic.down_mbps, 0.0);
    }
}
