//! The entries of a dict in their order, as long as that is the order of a schema.

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A walk through a dict.
pub struct Entries<'a, 'py> {
    dict: &'a Bound<'py, PyDict>,
    position: ffi::Py_ssize_t,
}

impl<'a, 'py> Entries<'a, 'py> {
    pub fn of(dict: &'a Bound<'py, PyDict>) -> Self {
        Entries { dict, position: 0 }
    }

    /// The next value, if *key* itself (the same object, as interned names are) is its key.
    #[inline]
    pub fn next_value(&mut self, key: &Py<PyString>) -> Option<Bound<'py, PyAny>> {
        let (mut found, mut value) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the dict is alive and we hold the interpreter.  Should it have changed since the last call,
        // `PyDict_Next` still checks its position against the entries there are.
        let any =
            unsafe { ffi::PyDict_Next(self.dict.as_ptr(), &mut self.position, &mut found, &mut value) != 0 };
        if !any || found != key.as_ptr() {
            return None;
        }
        // SAFETY: both were just lent to us by the dict, and no Python code ran since.
        Some(unsafe { Bound::from_borrowed_ptr(self.dict.py(), value) })
    }
}
