//! The entries of a dict in their order, as long as that is the order of a schema.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// How many entries ahead the walk asks for values: the time that one takes to come from memory.
const AHEAD: usize = 8;

/// A walk through a dict.
pub struct Entries<'a, 'py> {
    dict: &'a Bound<'py, PyDict>,
    position: ffi::Py_ssize_t,
    ahead: ffi::Py_ssize_t,
}

impl<'a, 'py> Entries<'a, 'py> {
    pub fn of(dict: &'a Bound<'py, PyDict>) -> Self {
        let mut entries = Entries { dict, position: 0, ahead: 0 };
        for _ in 0..AHEAD {
            entries.look_ahead();
        }
        entries
    }

    /// Ask for the value that comes `AHEAD` entries later, so that it is there when it is its turn.
    #[inline]
    fn look_ahead(&mut self) {
        let mut value = ptr::null_mut();
        // SAFETY: as in `next_value`.
        let any = unsafe {
            ffi::PyDict_Next(self.dict.as_ptr(), &mut self.ahead, ptr::null_mut(), &mut value) != 0
        };
        if any {
            prefetch(value);
        }
    }

    /// The next value, if *key* itself (the same object, as interned names are) is its key.
    #[inline]
    pub fn next_value(&mut self, key: &Py<PyString>) -> Option<Bound<'py, PyAny>> {
        self.look_ahead();
        let (mut found, mut value) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the dict is alive and we hold the interpreter.  Should it have changed since the
        // last call, `PyDict_Next` still checks its position against the entries there are.
        let any =
            unsafe { ffi::PyDict_Next(self.dict.as_ptr(), &mut self.position, &mut found, &mut value) != 0 };
        if !any || found != key.as_ptr() {
            return None;
        }
        // SAFETY: both were just lent to us by the dict, and no Python code ran since.
        Some(unsafe { Bound::from_borrowed_ptr(self.dict.py(), value) })
    }
}

/// Have the processor fetch what lies at *address*, while we go on.
#[inline]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which may name any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
