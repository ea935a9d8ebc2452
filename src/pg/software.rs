//! What computes results, besides the data: the server's program, the libraries, and the files that they read. Asked by
//! the postmaster alone, which has no other thread.
//!
//! A file counts by its place and by what says that it has been replaced, not by its content: reading all of it would
//! take too long at a start.

use std::ffi::{CStr, OsStr, c_char};
use std::fs::{self, Metadata};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use arrow_cache_core::{Hash128, HashBuffer};
use pgrx::pg_sys;

use super::server;

/// What is not below a folder of the server: the libraries that are found by name, and the locales of libc.
const OF_THE_SYSTEM: [&str; 2] = ["/etc/ld.so.cache", "/usr/lib/locale"];
/// More files are not looked at.
const MOST_FILES: usize = 100_000;

/// One number for all of it; `None` if it cannot be told.
///
/// These are the files that the postmaster has mapped (the program, preloaded libraries, those that they are linked
/// with, locales), the folders of the server's libraries and shared files (dictionaries, sets of time zones), the rules
/// of time zones, and the files in the folders of `dynamic_library_path`.
pub fn fingerprint() -> Option<Hash128> {
    let mut files = Files { hash: HashBuffer::new(), left: MOST_FILES };
    let mut mapped = mapped_files()?;
    mapped.sort_unstable();
    mapped.dedup();
    mapped.iter().try_for_each(|path| files.add(path))?;
    for folder in [own_library_folder(), share_folder(), time_zone_folder()?] {
        files.add(&real(folder))?;
    }
    searched_folders().into_iter().try_for_each(|folder| files.add_files(&real(folder)))?;
    OF_THE_SYSTEM.iter().try_for_each(|path| files.add(Path::new(path)))?;
    files.hash.is_complete().then(|| files.hash.finish())
}

/// Files, gathered in one hash.
struct Files {
    hash: HashBuffer,
    left: usize,
}

impl Files {
    /// Adds a file, or a folder with all that is below it. `None` if there are too many.
    fn add(&mut self, path: &Path) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        self.hash.part(path.as_os_str().as_bytes());
        let link = fs::symlink_metadata(path).ok();
        // A link counts by what it leads to, too, but only a real folder is looked through, so that there is an end.
        self.add_facts(link.as_ref());
        if link.as_ref().is_some_and(Metadata::is_symlink) {
            self.add_facts(fs::metadata(path).ok().as_ref());
        }
        if link.is_some_and(|link| link.is_dir()) {
            names_in(path)?.iter().try_for_each(|name| self.add(name))
        } else {
            Some(())
        }
    }

    /// Adds a folder, and the files in it, but not what is below its folders. It need not be there.
    fn add_files(&mut self, folder: &Path) -> Option<()> {
        self.hash.part(folder.as_os_str().as_bytes());
        for name in names_in(folder).unwrap_or_default() {
            self.left = self.left.checked_sub(1)?;
            if let Some(facts) = fs::metadata(&name).ok().filter(Metadata::is_file) {
                self.hash.part(name.as_os_str().as_bytes());
                self.add_facts(Some(&facts));
            }
        }
        Some(())
    }

    /// Nobody can set the time of the last change of a file's record (ctime).
    fn add_facts(&mut self, facts: Option<&Metadata>) {
        let Some(facts) = facts else { return self.hash.u8(0) };
        self.hash.u8(1);
        let times = [facts.mtime(), facts.mtime_nsec(), facts.ctime(), facts.ctime_nsec()];
        times.into_iter().for_each(|time| self.hash.u64(time.cast_unsigned()));
        self.hash.u64(facts.ino());
        self.hash.u64(facts.size());
    }
}

/// What is in a folder, in the order of names.
fn names_in(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    names.sort_unstable();
    Some(names)
}

/// Where a folder is that links may lead to.
fn real(folder: PathBuf) -> PathBuf {
    fs::canonicalize(&folder).unwrap_or(folder)
}

/// The files that this process has mapped for itself alone, so without shared memory.
fn mapped_files() -> Option<Vec<PathBuf>> {
    let maps = fs::read("/proc/self/maps").ok()?;
    // Addresses, rights, offset, device, number of the file, and its name.
    let of_line = |line: &[u8]| {
        let rights = line.split(|byte| *byte == b' ').nth(1)?;
        let name = line.iter().position(|byte| *byte == b'/').map(|at| &line[at..])?;
        rights.ends_with(b"p").then(|| PathBuf::from(OsStr::from_bytes(name)))
    };
    Some(maps.split(|byte| *byte == b'\n').filter_map(of_line).collect())
}

/// The folder of the server's shared files.
fn share_folder() -> PathBuf {
    let mut path = [0 as c_char; pg_sys::MAXPGPATH as usize];
    // SAFETY: the first path is a global of the server that ends in NUL; the second one has the length that the
    // function asks for.
    unsafe {
        kept!(pg_sys::get_share_path((&raw const pg_sys::my_exec_path).cast(), path.as_mut_ptr()));
        path_of(path.as_ptr())
    }
}

/// The folder with the rules of time zones, which may be the system's.
fn time_zone_folder() -> Option<PathBuf> {
    // SAFETY: with no place for a name, the function opens what it is given, below the folder. The file is ours.
    let folder = unsafe {
        let file = server::pg_open_tzfile(c".".as_ptr(), std::ptr::null_mut());
        (file >= 0).then(|| OwnedFd::from_raw_fd(file))?
    };
    fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()
}

/// The folder of the server's own libraries, to which names may lead deeper (`$libdir/plugins/x`).
fn own_library_folder() -> PathBuf {
    // SAFETY: a global of the server that ends in NUL.
    unsafe { path_of((&raw const pg_sys::pkglib_path).cast()) }
}

/// The other folders in which the server searches for libraries, by their names alone.
fn searched_folders() -> Vec<PathBuf> {
    // SAFETY: a setting, which ends in NUL, or null.
    let searched = unsafe {
        let searched = pg_sys::Dynamic_library_path;
        if searched.is_null() { c"" } else { CStr::from_ptr(searched) }.to_bytes()
    };
    let folders = searched.split(|byte| *byte == b':').filter(|path| path.starts_with(b"/"));
    folders.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// # Safety
/// A text that ends in NUL.
unsafe fn path_of(text: *const c_char) -> PathBuf {
    // SAFETY: the caller's promise.
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()))
}
