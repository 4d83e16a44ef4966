//! What is wrong, and where: a path that grows as the error travels outwards.

use pyo3::exceptions::{PyArithmeticError, PyAttributeError, PyLookupError, PyTypeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(nightwire_native, EncodeError, PyValueError, "A value does not fit its layout.");
pyo3::create_exception!(nightwire_native, DecodeError, PyValueError, "Bytes are cut off or malformed.");

/// Why something failed.  Boxed wherever it is returned: errors are rare, and results small.
pub enum Error {
    /// The input is to blame: the path to the culprit (`.source.flux`, `[3]`) and the reason.
    Input { path: String, why: String },
    /// Bytes follow the record's end.
    Trailing { end: usize, size: usize },
    /// Something else went wrong in Python: an interrupt, no memory.
    Raised(PyErr),
}

pub type Checked<T> = Result<T, Box<Error>>;

impl Error {
    pub fn new(why: impl Into<String>) -> Box<Self> {
        Box::new(Error::Input { path: String::new(), why: why.into() })
    }

    /// The error of a converter: its complaint, where it is one about the value.
    pub fn from_python(py: Python<'_>, error: PyErr) -> Box<Self> {
        let about_the_value = error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyTypeError>(py)
            || error.is_instance_of::<PyLookupError>(py)
            || error.is_instance_of::<PyAttributeError>(py)
            || error.is_instance_of::<PyArithmeticError>(py);
        if !about_the_value {
            return Box::new(Error::Raised(error));
        }
        let name = error.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
        Error::new(format!("{name} {}", error.value(py)).trim_end())
    }

    fn inside(mut self: Box<Self>, step: &str) -> Box<Self> {
        if let Error::Input { path, .. } = &mut *self {
            path.insert_str(0, step);
        }
        self
    }
}

impl From<PyErr> for Box<Error> {
    fn from(error: PyErr) -> Self {
        Box::new(Error::Raised(error))
    }
}

/// Says where an error lies, one step further out.
pub trait Located {
    fn in_field(self, name: &str) -> Self;
    fn in_item(self, at: impl std::fmt::Display) -> Self;
}

impl<T> Located for Checked<T> {
    #[inline]
    fn in_field(self, name: &str) -> Self {
        self.map_err(|error| error.inside(&format!(".{name}")))
    }

    #[inline]
    fn in_item(self, at: impl std::fmt::Display) -> Self {
        self.map_err(|error| error.inside(&format!("[{at}]")))
    }
}
