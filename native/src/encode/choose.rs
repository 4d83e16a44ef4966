//! fastavro's choice among the branches of a union, branch by branch as its `write_union` makes it.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyString, PyTuple};

use crate::encode::Encoder;
use crate::encode::layout::{Field, Node};

impl Encoder {
    /// The index of the branch that fastavro would write *value* as.
    ///
    /// The first that is valid; but of records that with most of the value's fields, and a double
    /// rather than a float.
    pub fn choose(&self, branches: &[usize], value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let (mut best, mut most_fields) = (None, None);
        for (index, &branch) in branches.iter().enumerate() {
            if !self.is_valid(branch, value)? {
                continue;
            }
            match self.layout.bare(branch) {
                Node::Record { fields, .. } => {
                    let count = Some(count_of(fields, value)?);
                    if count > most_fields {
                        (best, most_fields) = (Some(index), count);
                    }
                }
                Node::Float => return Ok(Some(self.double_after(branches, index).unwrap_or(index))),
                _ => return Ok(Some(index)),
            }
        }
        Ok(best)
    }

    fn double_after(&self, branches: &[usize], index: usize) -> Option<usize> {
        (index + 1..branches.len()).find(|&at| matches!(self.layout.bare(branches[at]), Node::Double))
    }

    /// Whether fastavro's validation would take *value* as *node*.
    fn is_valid(&self, node: usize, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match &self.layout.nodes[node] {
            Node::Logical { inner, converter, .. } => match converter.bind(value.py()).call1((value,)) {
                Ok(value) => self.is_valid_bare(inner, &value),
                Err(_) => Ok(false), // what cannot be converted is of another branch
            },
            bare => self.is_valid_bare(bare, value),
        }
    }

    fn is_valid_bare(&self, node: &Node, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let sized = |size: usize| value.len().is_ok_and(|len| len == size);
        let is_bytes = value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>();
        Ok(match node {
            Node::Null => value.is_none(),
            Node::Boolean => value.is_instance_of::<PyBool>(),
            Node::String => value.is_instance_of::<PyString>(),
            Node::Bytes => is_bytes,
            Node::Fixed { size } => is_bytes && sized(*size),
            Node::Int => self.types.integer(value).is_some_and(|value| i32::try_from(value).is_ok()),
            Node::Long => self.types.integer(value).is_some(),
            Node::Float | Node::Double => matches!(self.types.number(value), Ok(Some(_))),
            Node::Enum { indices, .. } => indices.bind(value.py()).contains(value).unwrap_or(false),
            Node::Array { items } => self.is_valid_array(*items, value)?,
            Node::Map { values } => self.is_valid_map(*values, value)?,
            Node::Record { name, fields } => self.is_valid_record(name, fields, value)?,
            Node::Nullable { other, .. } => value.is_none() || self.is_valid_one_of(&[*other], value)?,
            Node::Union { branches } => self.is_valid_one_of(branches, value)?,
            Node::Logical { inner, .. } => self.is_valid_bare(inner, value)?,
        })
    }

    fn is_valid_one_of(&self, branches: &[usize], value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let named = named(value);
        for &branch in branches {
            match &named {
                Some((name, value)) if *name == self.layout.names[branch] => {
                    return self.is_valid(branch, value);
                }
                None if self.is_valid(branch, value)? => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }

    fn is_valid_array(&self, items: usize, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !self.types.is_sequence(value) || value.is_instance_of::<PyString>() {
            return Ok(false);
        }
        for item in value.try_iter()? {
            if !self.is_valid(items, &item?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_valid_map(&self, values: usize, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(map) = self.as_dict(value)? else { return Ok(false) };
        for (key, value) in map
            .items()
            .iter()
            .map(|item| item.extract::<(Bound<PyAny>, Bound<PyAny>)>())
            .collect::<PyResult<Vec<_>>>()?
        {
            if !key.is_instance_of::<PyString>() || !self.is_valid(values, &value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_valid_record(&self, name: &str, fields: &[Field], value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        let Some(record) = self.as_dict(value)? else { return Ok(false) };
        if record.get_item("-type")?.is_some_and(|kind| !kind.eq(name).unwrap_or(false)) {
            return Ok(false);
        }
        for field in fields {
            let default = || field.default.as_ref().map_or_else(|| py.None(), |value| value.clone_ref(py));
            let value = record.get_item(&field.key)?.unwrap_or_else(|| default().into_bound(py));
            if !self.is_valid(field.node, &value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A mapping as a dict: itself, or a copy of another mapping.
    pub fn as_dict<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if let Ok(dict) = value.cast::<PyDict>() {
            return Ok(Some(dict.clone()));
        }
        if !self.types.is_mapping(value) {
            return Ok(None);
        }
        let dict = PyDict::new(value.py());
        dict.update(value.cast()?)?;
        Ok(Some(dict))
    }
}

fn count_of(fields: &[Field], value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let mut count = 0;
    for field in fields {
        count += usize::from(value.contains(&field.key)?);
    }
    Ok(count)
}

/// fastavro's notation of a value together with its branch's name.
pub fn named<'py>(value: &Bound<'py, PyAny>) -> Option<(String, Bound<'py, PyAny>)> {
    value.cast::<PyTuple>().ok()?.extract().ok()
}
