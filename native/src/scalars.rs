//! Values without an inside, in all the Python types that they may come in.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::encode::{Encoder, Manner};
use crate::fault::{Checked, Fault};
use crate::fit::{boolean, is_bytes, wrong};
use crate::layout::Node;
use crate::output::Output;

impl Encoder {
    pub fn write_scalar(
        &self,
        node: &Node,
        value: &Bound<'_, PyAny>,
        manner: Manner,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let number = || self.kinds.number(value)?.ok_or_else(|| wrong(value, "a number"));
        match node {
            Node::Boolean => out.put_boolean(boolean(value)?.ok_or_else(|| wrong(value, "a boolean"))?),
            Node::Int | Node::Long => out.put_long(self.integer(node, value)?),
            Node::Float => out.put_float(number()?),
            Node::Double => out.put_double(number()?),
            Node::String => {
                out.put_bytes(text(value)?.to_str().map_err(|error| said(value, error))?.as_bytes())
            }
            Node::Bytes => write_bytes(value, out)?,
            Node::Fixed { size } => write_fixed(*size, value, manner, out)?,
            Node::Enum { symbols, indices } => match indices.bind(value.py()).get_item(value) {
                Ok(Some(index)) => out.put_long(index.extract()?),
                _ => return Err(wrong(value, &format!("one of {}", symbols.join(", ")))),
            },
            _ if value.is_none() => {}
            _ => return Err(wrong(value, "null")),
        }
        Ok(())
    }

    fn integer(&self, node: &Node, value: &Bound<'_, PyAny>) -> Checked<i64> {
        let bits = if matches!(node, Node::Int) { 32 } else { 64 };
        match self.kinds.integer(value) {
            Some(integer) if bits == 64 || i32::try_from(integer).is_ok() => Ok(integer),
            _ => Err(wrong(value, &format!("an integer of {bits} bits"))),
        }
    }
}

fn text<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Checked<&'a Bound<'py, PyString>> {
    value.cast().map_err(|_| wrong(value, "a string"))
}

fn write_bytes(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Checked<()> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        out.put_bytes(bytes.as_bytes());
        return Ok(());
    }
    if !is_bytes(value) {
        return Err(wrong(value, "bytes"));
    }
    let buffer = PyBuffer::<u8>::get(value).map_err(|error| said(value, error))?;
    out.put_bytes(&buffer.to_vec(value.py())?);
    Ok(())
}

fn write_fixed(size: usize, value: &Bound<'_, PyAny>, manner: Manner, out: &mut Vec<u8>) -> Checked<()> {
    let bytes = match (value.cast::<PyBytes>(), value.cast::<PyByteArray>()) {
        (Ok(bytes), _) => bytes.as_bytes().to_vec(),
        (_, Ok(bytes)) if manner.lenient => bytes.to_vec(),
        _ => return Err(wrong(value, &format!("{size} bytes"))),
    };
    if bytes.len() != size {
        return Err(wrong(value, &format!("{size} bytes")));
    }
    out.extend_from_slice(&bytes);
    Ok(())
}

fn said(value: &Bound<'_, PyAny>, error: PyErr) -> Box<Fault> {
    Fault::from_python(value.py(), error)
}
