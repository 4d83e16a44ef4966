//! Values with an inside: arrays, maps, records, and the branches of unions.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::encode::entries::Entries;
use crate::encode::layout::{Field, Node};
use crate::encode::validate::mismatch;
use crate::encode::{EncodeContext, Encoder};
use crate::error::{Checked, Error, Located};
use crate::output::Output;

type Anything<'py> = Bound<'py, PyAny>;

impl Encoder {
    pub fn write_array(
        &self,
        items: usize,
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let lenient = || context.lenient && self.types.is_sequence(value);
        if !value.is_exact_instance_of::<PyList>() && !self.types.is_array(value) && !lenient() {
            return Err(mismatch(value, "an array"));
        }
        let list = match value.cast_exact::<PyList>() {
            Ok(list) => list.get_slice(0, list.len()), // a copy: the list may change under our feet
            Err(_) => value.py().get_type::<PyList>().call1((value,))?.cast_into().map_err(PyErr::from)?,
        };
        if !list.is_empty() {
            out.put_long(list.len() as i64);
        }
        for (at, item) in list.iter().enumerate() {
            self.write(items, &item, context, out).in_item(at)?;
        }
        out.put_long(0);
        Ok(())
    }

    pub fn write_map(
        &self,
        values: usize,
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let map = self.as_dict(value)?.ok_or_else(|| mismatch(value, "a map"))?;
        let entries = map.items();
        if !entries.is_empty() {
            out.put_long(entries.len() as i64);
        }
        for entry in entries {
            let (key, value): (Anything, Anything) = entry.extract()?;
            let name = key.cast::<PyString>().map_err(|_| mismatch(&key, "a string, as keys of maps are"))?;
            let name = name.to_str().map_err(|error| Error::from_python(key.py(), error))?;
            out.put_bytes(name.as_bytes());
            self.write(values, &value, context, out).in_item(name)?;
        }
        out.put_long(0);
        Ok(())
    }

    /// Most records have their fields in the schema's order, with names that Python has interned.
    pub fn write_record(
        &self,
        name: &str,
        fields: &[Field],
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let record = self.as_dict(value)?.ok_or_else(|| mismatch(value, "a record"))?;
        let inside = context.deeper()?;
        let mut entries = Entries::of(&record);
        for (at, field) in fields.iter().enumerate() {
            let Some(value) = entries.next_value(&field.key) else {
                return self.write_unordered(name, fields, at, &record, context, out);
            };
            self.write(field.node, &value, inside, out).in_field(&field.name)?;
        }
        self.refuse_unknown_fields(name, fields, fields.len(), &record, context)
    }

    /// Write the fields from number *from* on, each looked up by its name.
    fn write_unordered(
        &self,
        name: &str,
        fields: &[Field],
        from: usize,
        record: &Bound<'_, PyDict>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let (mut known, inside) = (from, context.deeper()?);
        for field in &fields[from..] {
            let value = record.get_item(&field.key)?;
            known += usize::from(value.is_some());
            self.write_field(field, value, record.py(), inside, out).in_field(&field.name)?;
        }
        self.refuse_unknown_fields(name, fields, known, record, context)
    }

    /// Write the *value* of a field, or where there is none, what stands for it.
    fn write_field(
        &self,
        field: &Field,
        value: Option<Anything<'_>>,
        py: Python<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let lenient = EncodeContext { lenient: true, ..context };
        match (value, &field.default) {
            (Some(value), _) => self.write(field.node, &value, context, out),
            (None, Some(default)) => self.write(field.node, default.bind(py), lenient, out),
            (None, None) if context.lenient && self.takes_null(field.node) => {
                self.write(field.node, py.None().bind(py), context, out)
            }
            _ => Err(Error::new("it is missing, and has no default")),
        }
    }

    fn takes_null(&self, node: usize) -> bool {
        match self.layout.bare(node) {
            Node::Null | Node::Nullable { .. } => true,
            Node::Union { branches } => {
                branches.iter().any(|&branch| matches!(self.layout.bare(branch), Node::Null))
            }
            _ => false,
        }
    }

    /// Refuse a record that holds more than the *known* fields that were found.
    fn refuse_unknown_fields(
        &self,
        name: &str,
        fields: &[Field],
        known: usize,
        record: &Bound<'_, PyDict>,
        context: EncodeContext,
    ) -> Checked<()> {
        if known == record.len() || context.lenient {
            return Ok(());
        }
        let py = record.py();
        let names_it = |key: &Anything, value: &Anything| {
            context.named && key.eq("-type").unwrap_or(false) && value.eq(name).unwrap_or(false)
        };
        let is_field = |key: &Anything| fields.iter().any(|field| key.eq(&field.key).unwrap_or(false));
        let mut unknown = Vec::new();
        for entry in record.items() {
            let (key, value): (Anything, Anything) = entry.extract()?;
            if !is_field(&key) && !names_it(&key, &value) {
                unknown.push(key.str().map_err(|error| Error::from_python(py, error))?.to_string());
            }
        }
        unknown.sort();
        match unknown.as_slice() {
            [] => Ok(()),
            names => Err(Error::new(format!("the schema has no field {}", names.join(", ")))),
        }
    }

    /// Write *value* as one of *branches*: the *only* one besides null, or the one that fastavro
    /// chooses.
    pub fn write_branch(
        &self,
        branches: &[usize],
        only: Option<usize>,
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let inside = EncodeContext { named: true, ..context };
        let position = |branch: usize| branches.iter().position(|&one| one == branch).unwrap_or_default();
        if value.is_instance_of::<PyTuple>() {
            return self.write_named(branches, value, inside, out);
        }
        if let Some(other) = only {
            out.put_long(position(other) as i64);
            return self.write(other, value, inside, out);
        }
        let first = self.first_fitting(branches, value, inside, out)?;
        let chosen = self.choose(branches, value)?.unwrap_or(first);
        out.put_long(chosen as i64);
        self.write(branches[chosen], value, EncodeContext { lenient: true, ..inside }, out)
    }

    /// Write what comes as a tuple of a branch's name and the value.
    fn write_named(
        &self,
        branches: &[usize],
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<()> {
        let Ok((name, value)) = value.extract::<(Anything, Anything)>() else {
            return Err(mismatch(value, &self.branch_names(branches)));
        };
        let is_named = |&branch: &usize| name.eq(&self.layout.names[branch]).unwrap_or(false);
        let Some(index) = branches.iter().position(is_named) else {
            return Err(mismatch(&name, &self.branch_names(branches)));
        };
        out.put_long(index as i64);
        self.write(branches[index], &value, context, out)
    }

    /// The first branch that *value* fits, found by writing it.
    fn first_fitting(
        &self,
        branches: &[usize],
        value: &Anything<'_>,
        context: EncodeContext,
        out: &mut Vec<u8>,
    ) -> Checked<usize> {
        let start = out.len();
        for (index, &branch) in branches.iter().enumerate() {
            let written = self.write(branch, value, context, out);
            out.truncate(start);
            match written.map_err(|error| *error) {
                Ok(()) => return Ok(index),
                Err(raised @ Error::Raised(_)) => return Err(Box::new(raised)),
                Err(_) => {}
            }
        }
        Err(mismatch(value, &self.branch_names(branches)))
    }

    fn branch_names(&self, branches: &[usize]) -> String {
        let names: Vec<&str> = branches.iter().map(|&branch| self.layout.names[branch].as_str()).collect();
        names.join(" or ")
    }
}
