//! A file system of SQLite that records what is written and synced, and that fails when asked to.
//!
//! It is the one of the system, but for four functions of a file.
//!
//! - RECORDER-1: a file that it has opened is one of the system's, whose table of functions is the first
//!   field of a `Functions`. That lives for ever.
#![expect(
    unsafe_code,
    reason = "SQLite calls the functions of a file by C pointers; see RECORDER-1"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;

use rusqlite::ffi;

use crate::engine::lock;

/// The two files that a store consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part {
    Main,
    Wal,
}

/// What was done to the files, or noted by the test.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    Write {
        part: Part,
        at: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        part: Part,
        size: usize,
    },
    Sync(Part),
    /// The test was told that the job of this id is stored.
    Put(String),
    /// It was told that so many events are stored.
    Appended(u64),
    /// It was told that the job of this id is done.
    Done(String),
}

#[derive(Debug, Default)]
struct Recording {
    deeds: Vec<Deed>,
    /// What writes and syncs return, if they are to fail.
    write_fails: Option<c_int>,
    sync_fails: Option<c_int>,
}

#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) name: &'static str,
    base: *mut ffi::sqlite3_vfs,
    recording: Mutex<Recording>,
}

/// The functions of a file.
#[repr(C)]
struct Functions {
    own: ffi::sqlite3_io_methods,
    base: *const ffi::sqlite3_io_methods,
    recorder: &'static Recorder,
    part: Part,
}

impl Recorder {
    /// Registers a file system of this name.
    pub(super) fn register(name: &str) -> &'static Recorder {
        let name: &'static CStr = Box::leak(CString::new(name).unwrap().into_boxed_c_str());
        // SAFETY: (RECORDER-1) the table of the system's file system is copied; it and the copy live for
        // ever, as does the name.
        unsafe {
            assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
            let base = ffi::sqlite3_vfs_find(std::ptr::null());
            let recorder: &'static Recorder = Box::leak(Box::new(Recorder {
                name: name.to_str().unwrap(),
                base,
                recording: Mutex::default(),
            }));
            let own = Box::leak(Box::new(*base));
            own.zName = name.as_ptr();
            own.pNext = std::ptr::null_mut();
            own.pAppData = std::ptr::from_ref(recorder).cast_mut().cast();
            own.xOpen = Some(open);
            assert_eq!(ffi::sqlite3_vfs_register(own, 0), ffi::SQLITE_OK);
            recorder
        }
    }

    pub(super) fn note(&self, deed: Deed) {
        lock(&self.recording).deeds.push(deed);
    }

    pub(super) fn deeds(&self) -> Vec<Deed> {
        lock(&self.recording).deeds.clone()
    }

    pub(super) fn fail_writes(&self, code: Option<c_int>) {
        lock(&self.recording).write_fails = code;
    }

    pub(super) fn fail_syncs(&self, code: Option<c_int>) {
        lock(&self.recording).sync_fails = code;
    }
}

/// Opens a file of the system, and replaces its functions.
unsafe extern "C" fn open(
    own: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: (RECORDER-1) the data of this file system is a recorder that lives for ever, and the system's
    // file system gets what SQLite gives.
    unsafe {
        let recorder: &'static Recorder = &*(*own).pAppData.cast::<Recorder>();
        let Some(base_open) = (*recorder.base).xOpen else {
            return ffi::SQLITE_CANTOPEN;
        };
        let code = base_open(recorder.base, name, file, flags, out);
        let part = match flags {
            _ if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => Part::Main,
            _ if flags & ffi::SQLITE_OPEN_WAL != 0 => Part::Wal,
            _ => return code,
        };
        if code != ffi::SQLITE_OK || (*file).pMethods.is_null() {
            return code;
        }
        let base = (*file).pMethods;
        let mut own = *base;
        // Files that are mapped are written without a call.
        own.iVersion = own.iVersion.min(2);
        own.xWrite = Some(write);
        own.xTruncate = Some(truncate);
        own.xSync = Some(sync);
        let functions = Box::leak(Box::new(Functions {
            own,
            base,
            recorder,
            part,
        }));
        (*file).pMethods = &raw const functions.own;
        code
    }
}

/// Returns the functions of a file.
///
/// # Safety
/// The file was opened by [`open`].
unsafe fn functions_of(file: *mut ffi::sqlite3_file) -> &'static Functions {
    // SAFETY: (RECORDER-1) the table is the first field of functions that live for ever.
    unsafe { &*(*file).pMethods.cast::<Functions>() }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: (RECORDER-1) SQLite calls this for files with these functions, and gives so many bytes.
    unsafe {
        let Functions {
            base,
            recorder,
            part,
            ..
        } = functions_of(file);
        {
            let mut recording = lock(&recorder.recording);
            if let Some(code) = recording.write_fails {
                return code;
            }
            let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), count as usize).to_vec();
            let at = at as usize;
            recording.deeds.push(Deed::Write {
                part: *part,
                at,
                bytes,
            });
        }
        (**base).xWrite.unwrap()(file, bytes, count, at)
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: i64) -> c_int {
    // SAFETY: (RECORDER-1) SQLite calls this for files with these functions.
    unsafe {
        let functions = functions_of(file);
        functions.recorder.note(Deed::Truncate {
            part: functions.part,
            size: size as usize,
        });
        (*functions.base).xTruncate.unwrap()(file, size)
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: (RECORDER-1) SQLite calls this for files with these functions.
    unsafe {
        let functions = functions_of(file);
        {
            let mut recording = lock(&functions.recorder.recording);
            if let Some(code) = recording.sync_fails {
                return code;
            }
            recording.deeds.push(Deed::Sync(functions.part));
        }
        (*functions.base).xSync.unwrap()(file, flags)
    }
}
