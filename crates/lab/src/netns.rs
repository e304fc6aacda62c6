//! Named network namespaces in the layout of `ip netns`, so that a user can inspect them.
//!
//! A namespace lives as a bind mount below `/run/netns`, which outlives its creator. The drop of [`Netns`] removes
//! it. After an exit without destructors, [`sweep`] removes it at the next start. A process counts as alive while it
//! holds the lock on its file below `/run/paceline`. Process numbers are reused, but locks are not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use paceline_linux::netlink::Netlink;
use paceline_linux::offload::{self, Offload};
use paceline_linux::{Context, SystemError, sysctl};

/// A network namespace that is removed with this value.
#[derive(Debug)]
pub struct Netns {
    name: String,
    handle: File,
}

impl Netns {
    /// Creates `paceline-<pid>-<role>` with its loopback interface up. If this process already uses the role, adds a
    /// number.
    pub fn create(role: &str) -> Result<Netns, SystemError> {
        let name = reserve_name(role)?;
        let path = path_of(&name);
        let created = create_mounted(&path)
            .and_then(|()| File::open(&path).context(|| format!("open namespace {name}")))
            .map(|handle| Netns { name: name.clone(), handle });
        let netns = match created {
            Ok(netns) => netns,
            Err(error) => {
                remove(&name);
                return Err(error);
            }
        };
        netns.netlink()?.set_up("lo", true)?;
        Ok(netns)
    }

    /// The name below `/run/netns`, as for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into this namespace permanently. Threads that it starts afterwards are in it too.
    pub fn enter(&self) -> Result<(), SystemError> {
        enter_fd(self.handle.as_fd()).context(|| format!("enter namespace {}", self.name))
    }

    /// Runs `work` on a thread inside this namespace and waits for it. Sockets opened there stay in the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, SystemError> {
        run_in(self.handle.as_fd(), work).context(|| format!("enter namespace {}", self.name))
    }

    /// Sets several kernel settings inside this namespace.
    pub fn set_sysctls(&self, settings: &[(&str, &str)]) -> Result<(), SystemError> {
        self.run(|| settings.iter().try_for_each(|(name, value)| sysctl::set(name, value)))?
    }

    /// Reads a kernel setting inside this namespace.
    pub fn sysctl(&self, name: &str) -> Result<String, SystemError> {
        self.run(|| sysctl::get(name))?
    }

    /// Switches offloads of an interface inside this namespace.
    pub fn set_offloads(&self, interface: &str, offloads: &[Offload], on: bool) -> Result<(), SystemError> {
        self.run(|| offload::set(interface, offloads, on))?
    }

    /// Returns a netlink connection inside this namespace, usable from any thread.
    pub fn netlink(&self) -> Result<Netlink, SystemError> {
        self.run(Netlink::open)?
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Removes the namespaces of processes that died without removing them. Returns their names.
pub fn sweep() -> Vec<String> {
    let own = std::process::id();
    let mut removed = Vec::new();
    for name in existing() {
        let Some(pid) = owner_of(&name) else { continue };
        if pid != own && !is_alive(pid) {
            unmount(&name);
            let _ = fs::remove_file(lock_path(pid));
            removed.push(name);
        }
    }
    removed
}

/// Returns the present namespaces of this process.
pub fn own_names() -> Vec<String> {
    existing().into_iter().filter(|name| owner_of(name) == Some(std::process::id())).collect()
}

/// Checks whether namespaces can be created here. The error says what is missing.
pub fn check_permitted() -> Result<(), SystemError> {
    Netns::create("probe").map(drop)
}

/// Namespaces that this process has created. The lock lives as long as they do.
struct Registry {
    lock: Option<Flock<File>>,
    names: Vec<String>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { lock: None, names: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reserve_name(role: &str) -> Result<String, SystemError> {
    let pid = std::process::id();
    let mut registry = registry();
    if registry.lock.is_none() {
        registry.lock = Some(take_lock(pid)?);
        // Existing namespaces with our process number are left from an earlier process with the same number.
        existing().iter().filter(|name| owner_of(name) == Some(pid)).for_each(|name| unmount(name));
    }
    let base = format!("{PREFIX}{pid}-{role}");
    let taken = |name: &String| registry.names.contains(name);
    let mut name = base.clone();
    let mut copy = 2;
    while taken(&name) {
        name = format!("{base}.{copy}");
        copy += 1;
    }
    registry.names.push(name.clone());
    Ok(name)
}

fn take_lock(pid: u32) -> Result<Flock<File>, SystemError> {
    let path = lock_path(pid);
    let what = || format!("lock {}", path.display());
    fs::create_dir_all(LOCK_DIRECTORY).context(what)?;
    let file =
        OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(&path).context(what)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| SystemError::new(what(), errno))
}

fn is_alive(pid: u32) -> bool {
    match OpenOptions::new().write(true).open(lock_path(pid)) {
        Ok(file) => Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err(),
        Err(_) => false,
    }
}

fn remove(name: &str) {
    let mut registry = registry();
    registry.names.retain(|other| other != name);
    unmount(name);
    if registry.names.is_empty() && registry.lock.take().is_some() {
        let _ = fs::remove_file(lock_path(std::process::id()));
    }
}

fn unmount(name: &str) {
    let path = path_of(name);
    // Detached, so that a thread still inside does not keep the name.
    let _ = umount2(&path, MntFlags::MNT_DETACH);
    let _ = fs::remove_file(&path);
}

fn existing() -> Vec<String> {
    let Ok(entries) = fs::read_dir(NETNS_DIRECTORY) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

fn owner_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NETNS_DIRECTORY).join(name)
}

fn lock_path(pid: u32) -> PathBuf {
    Path::new(LOCK_DIRECTORY).join(format!("lab-{pid}.lock"))
}

fn create_mounted(path: &Path) -> Result<(), SystemError> {
    share_directory().context(|| format!("prepare {NETNS_DIRECTORY}"))?;
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o444)
        .open(path)
        .context(|| format!("create {}", path.display()))?;
    let made = thread::scope(|scope| {
        let worker = scope.spawn(|| -> nix::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            mount(Some("/proc/thread-self/ns/net"), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        });
        worker.join().unwrap_or(Err(nix::errno::Errno::ECANCELED))
    });
    made.context(|| "create a network namespace".to_owned())
}

/// Shares the directory as `ip netns` does: other mount namespaces must see the mounts below it.
fn share_directory() -> io::Result<()> {
    fs::create_dir_all(NETNS_DIRECTORY)?;
    let share = || {
        mount(None::<&str>, NETNS_DIRECTORY, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>)
    };
    if share() == Err(nix::errno::Errno::EINVAL) {
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(NETNS_DIRECTORY), NETNS_DIRECTORY, None::<&str>, bind, None::<&str>)?;
        share()?;
    }
    Ok(())
}

fn enter_fd(namespace: BorrowedFd<'_>) -> nix::Result<()> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
}

fn run_in<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(move || enter_fd(namespace).map(|()| work()));
        match worker.join() {
            Ok(result) => result.map_err(io::Error::from),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

const NETNS_DIRECTORY: &str = "/run/netns";
const LOCK_DIRECTORY: &str = "/run/paceline";
const PREFIX: &str = "paceline-";
