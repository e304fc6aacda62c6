//! `paceline top`: displays flows and subscribers of a running gateway, and updates them each second.

mod table;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::args::TopArgs;
use crate::error::{Error, Result};
use crate::interrupt;
use paceline_service::control;
use table::Traffic;
use view::View;

pub(crate) fn command(args: &TopArgs) -> Result<()> {
    // Ask first, so that errors of the socket appear on an ordinary screen.
    let first = control::ask(args.control.as_deref())?;
    if !std::io::stdout().is_terminal() {
        return Err(Error::input(
            "paceline top needs a terminal; use paceline flows, or paceline flows --json",
        ));
    }
    interrupt::watch()?;
    let mut view = View::default();
    view.show(Traffic::between(None, first));
    let mut terminal = ratatui::init();
    let ended = watch(args, &mut terminal, &mut view);
    ratatui::restore();
    ended
}

fn watch(args: &TopArgs, terminal: &mut ratatui::DefaultTerminal, view: &mut View) -> Result<()> {
    let screen = |error: std::io::Error| Error::io("use the terminal", &error);
    let mut due = Instant::now() + INTERVAL;
    while !interrupt::requested() {
        terminal.draw(|frame| view.draw(frame)).map_err(screen)?;
        // Short enough to notice a signal soon.
        let wait = due.saturating_duration_since(Instant::now()).min(Duration::from_millis(250));
        if event::poll(wait).map_err(screen)?
            && let Event::Key(key) = event::read().map_err(screen)?
            && key.kind == KeyEventKind::Press
            && !handle(key, view)
        {
            return Ok(());
        }
        if Instant::now() >= due {
            due = Instant::now() + INTERVAL;
            // A restarted gateway answers again later.
            match control::ask(args.control.as_deref()) {
                Ok(report) => view.show(Traffic::between(view.latest(), report)),
                Err(error) => view.complain(error.to_string()),
            }
        }
    }
    Ok(())
}

/// Handles a key. False if the program should end.
fn handle(key: KeyEvent, view: &mut View) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Tab => view.next_table(),
        KeyCode::Right | KeyCode::Char('>' | 's') => view.sort_by_next(true),
        KeyCode::Left | KeyCode::Char('<') => view.sort_by_next(false),
        KeyCode::Char('r') => view.reverse(),
        KeyCode::Down | KeyCode::Char('j') => view.scroll(1),
        KeyCode::Up | KeyCode::Char('k') => view.scroll(-1),
        KeyCode::PageDown => view.scroll(20),
        KeyCode::PageUp => view.scroll(-20),
        _ => {}
    }
    true
}

const INTERVAL: Duration = Duration::from_secs(1);

/// Displays two reports, one after the other, whatever they contain.
#[cfg(any(test, fuzzing))]
pub(crate) fn exercise(before: paceline_service::rows::Report, after: paceline_service::rows::Report) {
    let (flows, subscribers) = (after.flows.len(), after.subscribers.len());
    let traffic = Traffic::between(Some(&before), after);
    assert_eq!((traffic.flows.len(), traffic.subscribers.len()), (flows, subscribers));
    assert!(traffic.flows.iter().all(|row| row.len() == table::FLOW_COLUMNS.len()));
}
