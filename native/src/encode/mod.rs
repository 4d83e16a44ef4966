//! Python objects to bytes: `Encoder`, which writes a layout and checks as it goes.

mod choose;
mod compounds;
mod entries;
mod layout;
mod scalars;
mod validate;

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt};

use crate::cursor::MAX_DEPTH;
use crate::encode::layout::{Layout, Node};
use crate::encode::validate::{AbstractTypes, mismatch};
use crate::error::{Checked, EncodeError, Error};
use crate::output::Output;

/// Encodes the values of one layout.  Safe to share between threads.
///
/// Args:
///     layout: The layout, as JSON.
///     constants: Defaults.
///     converters: Functions of one argument that turn the values of logical types into plain ones.
///
/// Raises:
///     ValueError: It is no layout.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Encoder {
    pub layout: Layout,
    pub types: AbstractTypes,
    spare: Mutex<Vec<u8>>,
}

/// Capacity of the buffer that stays for the next value. [byte]
const MAX_SPARE: usize = 4 << 20;

#[pymethods]
impl Encoder {
    #[new]
    fn new(
        py: Python<'_>,
        layout: &str,
        constants: Vec<Py<PyAny>>,
        converters: Vec<Py<PyAny>>,
    ) -> PyResult<Self> {
        let layout = Layout::parse(py, layout, &constants, &converters)?;
        Ok(Encoder { layout, types: AbstractTypes::new(py)?, spare: Mutex::default() })
    }

    /// Return the Avro body of *value*.
    ///
    /// Raises:
    ///     EncodeError: It does not fit; says which field, and why.
    fn encode<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = self.spare.lock().map(|mut spare| std::mem::take(&mut *spare)).unwrap_or_default();
        out.clear();
        let written = self.write(self.layout.root, value, EncodeContext::default(), &mut out);
        let body = written.map(|()| PyBytes::new(value.py(), &out)).map_err(|error| encode_error(*error));
        if let (true, Ok(mut spare)) = (out.capacity() <= MAX_SPARE, self.spare.lock()) {
            *spare = out;
        }
        body
    }
}

fn encode_error(error: Error) -> PyErr {
    match error {
        Error::Raised(error) => error,
        Error::Input { path, why } => EncodeError::new_err(format!("{path}: {why}")),
        Error::Trailing { .. } => unreachable!("nothing is read"),
    }
}

/// In which context a value is taken.
#[derive(Clone, Copy, Default)]
pub struct EncodeContext {
    /// It lies directly in a union, where "-type" may name a record.
    pub named: bool,
    /// fastavro chose the branch by its own rules: unknown fields are left out, missing ones may be
    /// null.
    pub lenient: bool,
    pub depth: usize,
}

impl EncodeContext {
    pub fn deeper(self) -> Checked<Self> {
        if self.depth == MAX_DEPTH {
            return Err(Error::new(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(EncodeContext { named: false, depth: self.depth + 1, ..self })
    }
}

impl Encoder {
    #[inline]
    pub fn write(
        &self,
        node: usize,
        value: &Bound<'_, PyAny>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let node = &self.layout.nodes[node];
        if self.write_plain(node, value, out) {
            Ok(())
        } else {
            self.write_checked(node, value, context, out)
        }
    }

    /// Write a value of just the expected type, as nearly all are; false if it needs a closer look.
    fn write_plain(&self, node: &Node, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> bool {
        match node {
            Node::Float => value.cast_exact::<PyFloat>().map(|real| out.put_float(real.value())).is_ok(),
            Node::Double => value.cast_exact::<PyFloat>().map(|real| out.put_double(real.value())).is_ok(),
            Node::Boolean => {
                value.cast_exact::<PyBool>().map(|truth| out.put_boolean(truth.is_true())).is_ok()
            }
            Node::Int => exact_integer::<i32>(value).map(|int| out.put_long(int.into())).is_some(),
            Node::Long => exact_integer::<i64>(value).map(|long| out.put_long(long)).is_some(),
            Node::Nullable { null, other, .. } => self.write_nullable(*null, *other, value, out),
            Node::Null => value.is_none(),
            _ => false,
        }
    }

    fn write_nullable(&self, null: u8, other: usize, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> bool {
        if value.is_none() {
            out.put_long(null.into());
            return true;
        }
        let start = out.len();
        out.put_long((1 - null).into());
        let written = self.write_plain(&self.layout.nodes[other], value, out);
        if !written {
            out.truncate(start);
        }
        written
    }

    fn write_checked(
        &self,
        node: &Node,
        value: &Bound<'_, PyAny>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        match node {
            Node::Array { items } => self.write_array(*items, value, context.deeper()?, out),
            Node::Map { values } => self.write_map(*values, value, context.deeper()?, out),
            Node::Record { name, fields } => self.write_record(name, fields, value, context, out),
            Node::Nullable { other, branches, .. } => {
                self.write_branch(branches, Some(*other), value, context, out)
            }
            Node::Union { branches } => self.write_branch(branches, None, value, context, out),
            Node::Logical { inner, converter, kind } => {
                let plain = self.plain_value(converter, kind, value)?;
                self.write_checked(inner, &plain, context, out)
            }
            _ => self.write_scalar(node, value, context, out),
        }
    }

    /// The value of an Avro type that stands for *value* of a logical type.
    fn plain_value<'py>(
        &self,
        converter: &Py<PyAny>,
        kind: &str,
        value: &Bound<'py, PyAny>,
    ) -> Checked<Bound<'py, PyAny>> {
        if value.is_none() {
            return Err(mismatch(value, kind));
        }
        if kind.starts_with("timestamp") && self.types.is_naive(value) {
            return Err(Error::new(format!("{value} has no time zone")));
        }
        converter.bind(value.py()).call1((value,)).map_err(|error| Error::from_python(value.py(), error))
    }
}

/// The value of a Python integer, no subclass of it, where it fits.
fn exact_integer<'py, T: FromPyObjectOwned<'py>>(value: &Bound<'py, PyAny>) -> Option<T> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}
