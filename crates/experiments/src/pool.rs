//! Work on several threads. Each thread takes the next piece when it has finished one.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};

struct State<J, R> {
    todo: VecDeque<J>,
    done: Vec<R>,
    stop: Option<Error>,
}

/// Returns the number of processors.
pub(crate) fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Works through `todo` in order. Returns the results in the order in which they were ready, and an error if one
/// stopped the work. After an error no further piece begins. `Ok(None)` is a finished piece without a result.
pub(crate) fn work_off<J: Send, R: Send>(
    todo: impl IntoIterator<Item = J>,
    threads: u32,
    work: impl Fn(J) -> Result<Option<R>> + Sync,
) -> (Vec<R>, Option<Error>) {
    let state = Mutex::new(State { todo: todo.into_iter().collect(), done: Vec::new(), stop: None });
    let locked = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut state = locked();
        if state.stop.is_none() { state.todo.pop_front() } else { None }
    };
    let worker = || {
        while let Some(job) = next() {
            match work(job) {
                Ok(result) => locked().done.extend(result),
                Err(error) => locked().stop = Some(error),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(worker);
        }
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    (state.done, state.stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_done_once_and_an_error_ends_it() {
        let even = |n: u32| Ok(n.is_multiple_of(2).then_some(n));
        let (mut done, stop) = work_off(0..100, 4, even);
        done.sort_unstable();
        assert_eq!((done.len(), done[49], stop.is_none()), (50, 98, true));
        let fails = |n: u32| if n == 3 { Err(Error::interrupted()) } else { Ok(Some(n)) };
        let (done, stop) = work_off(0..100, 1, fails);
        assert_eq!((done, stop.is_some()), (vec![0, 1, 2], true));
    }
}
