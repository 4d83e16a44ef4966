//! Values without an inside, in all the Python types that they may come in.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use crate::encode::layout::Node;
use crate::encode::validate::{boolean, is_bytes, mismatch};
use crate::encode::{EncodeContext, Encoder};
use crate::error::{Checked, Error};
use crate::output::Output;

impl Encoder {
    pub fn write_scalar(
        &self,
        node: &Node,
        value: &Bound<'_, PyAny>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let number = || self.types.number(value)?.ok_or_else(|| mismatch(value, "a number"));
        match node {
            Node::Boolean => out.put_boolean(boolean(value)?.ok_or_else(|| mismatch(value, "a boolean"))?),
            Node::Int | Node::Long => out.put_long(self.integer(node, value)?),
            Node::Float => out.put_float(number()?),
            Node::Double => out.put_double(number()?),
            Node::String => out
                .put_bytes(text(value)?.to_str().map_err(|error| conversion_error(value, error))?.as_bytes()),
            Node::Bytes => write_bytes(value, out)?,
            Node::Fixed { size } => write_fixed(*size, value, context, out)?,
            Node::Enum { symbols, indices } => match indices.bind(value.py()).get_item(value) {
                Ok(Some(index)) => out.put_long(index.extract()?),
                _ => return Err(mismatch(value, &format!("one of {}", symbols.join(", ")))),
            },
            _ if value.is_none() => {}
            _ => return Err(mismatch(value, "null")),
        }
        Ok(())
    }

    fn integer(&self, node: &Node, value: &Bound<'_, PyAny>) -> Checked<i64> {
        let bits = if matches!(node, Node::Int) { 32 } else { 64 };
        match self.types.integer(value) {
            Some(integer) if bits == 64 || i32::try_from(integer).is_ok() => Ok(integer),
            _ => Err(mismatch(value, &format!("an integer of {bits} bits"))),
        }
    }
}

fn text<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Checked<&'a Bound<'py, PyString>> {
    value.cast().map_err(|_| mismatch(value, "a string"))
}

fn write_bytes(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Checked<()> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        out.put_bytes(bytes.as_bytes());
        return Ok(());
    }
    if !is_bytes(value) {
        return Err(mismatch(value, "bytes"));
    }
    let buffer = PyBuffer::<u8>::get(value).map_err(|error| conversion_error(value, error))?;
    out.put_bytes(&buffer.to_vec(value.py())?);
    Ok(())
}

fn write_fixed(
    size: usize,
    value: &Bound<'_, PyAny>,
    context: EncodeContext,
    out: &mut Vec<u8>,
) -> Checked<()> {
    let bytes = match (value.cast::<PyBytes>(), value.cast::<PyByteArray>()) {
        (Ok(bytes), _) => bytes.as_bytes().to_vec(),
        (_, Ok(bytes)) if context.lenient => bytes.to_vec(),
        _ => return Err(mismatch(value, &format!("{size} bytes"))),
    };
    if bytes.len() != size {
        return Err(mismatch(value, &format!("{size} bytes")));
    }
    out.extend_from_slice(&bytes);
    Ok(())
}

fn conversion_error(value: &Bound<'_, PyAny>, error: PyErr) -> Box<Error> {
    Error::from_python(value.py(), error)
}
