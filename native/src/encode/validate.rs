//! Which Python values fit which Avro type, and what is said of those that do not.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString};

use crate::error::{Checked, Error};

/// Python's abstract classes, looked up once.
pub struct AbstractTypes {
    pub integral: Py<PyAny>,
    pub real: Py<PyAny>,
    pub mapping: Py<PyAny>,
    pub sequence: Py<PyAny>,
    pub datetime: Py<PyAny>,
}

impl AbstractTypes {
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        let class = |module: &str, name: &str| Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind());
        Ok(AbstractTypes {
            integral: class("numbers", "Integral")?,
            real: class("numbers", "Real")?,
            mapping: class("collections.abc", "Mapping")?,
            sequence: class("collections.abc", "Sequence")?,
            datetime: class("datetime", "datetime")?,
        })
    }

    /// The value of an integer (NumPy's are some) that is no boolean.
    pub fn integer(&self, value: &Bound<'_, PyAny>) -> Option<i64> {
        if value.is_exact_instance_of::<PyInt>() {
            return value.extract().ok();
        }
        let fits = !value.is_instance_of::<PyBool>() && is_a(value, &self.integral);
        fits.then(|| value.py().get_type::<PyInt>().call1((value,)).ok()?.extract().ok()).flatten()
    }

    /// The value of a number that is no boolean.
    pub fn number(&self, value: &Bound<'_, PyAny>) -> Checked<Option<f64>> {
        if let Ok(float) = value.cast_exact::<PyFloat>() {
            return Ok(Some(float.value()));
        }
        if value.is_instance_of::<PyBool>() || !is_a(value, &self.real) {
            return Ok(None);
        }
        value.extract().map(Some).map_err(|error| Error::from_python(value.py(), error))
    }

    /// Whether it is a sequence of items; neither text nor bytes are.
    pub fn is_array(&self, value: &Bound<'_, PyAny>) -> bool {
        !value.is_instance_of::<PyString>() && !value.is_instance_of::<PyBytes>() && self.is_sequence(value)
    }

    pub fn is_sequence(&self, value: &Bound<'_, PyAny>) -> bool {
        is_a(value, &self.sequence)
    }

    pub fn is_mapping(&self, value: &Bound<'_, PyAny>) -> bool {
        is_a(value, &self.mapping)
    }

    /// Whether it is a time of day somewhere, nobody says where.
    pub fn is_naive(&self, value: &Bound<'_, PyAny>) -> bool {
        let zone = || value.getattr(intern!(value.py(), "tzinfo"));
        is_a(value, &self.datetime) && zone().is_ok_and(|zone| zone.is_none())
    }
}

fn is_a(value: &Bound<'_, PyAny>, class: &Py<PyAny>) -> bool {
    value.is_instance(class.bind(value.py())).unwrap_or(false)
}

/// A boolean, or NumPy's.
pub fn boolean(value: &Bound<'_, PyAny>) -> Checked<Option<bool>> {
    let kind = value.get_type().name()?;
    if kind != "bool" && kind != "bool_" {
        return Ok(None);
    }
    Ok(Some(value.is_truthy()?))
}

pub fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
}

/// What is said of a *value* that is not what was wanted.
#[cold]
pub fn mismatch(value: &Bound<'_, PyAny>, wanted: &str) -> Box<Error> {
    let shown: String =
        value.repr().map_or_else(|_| "…".into(), |repr| repr.to_string_lossy().chars().take(60).collect());
    let kind = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    Error::new(format!("{shown} is a {kind}, not {wanted}"))
}
