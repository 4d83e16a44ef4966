//! A plan made ready for Python: names interned, constants and converters in their places.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::decode::plan::{Kind, Node, Plan, ReadAs};

/// How to read one node.
pub enum Reader {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    /// An integer that the reader calls a float.
    RealInt,
    RealLong,
    Nan,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<Symbol>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(RecordReader),
    Refuse {
        of: usize,
        why: String,
    },
    Scale {
        of: usize,
        factor: f64,
        offset: f64,
    },
    /// A value that was not written; fresh for each alert where it could be changed.
    Constant {
        value: Py<PyAny>,
        fresh: bool,
    },
    Converted {
        inner: Box<Reader>,
        converter: Py<PyAny>,
    },
}

/// A symbol, or the name of one that the reader does not know.
pub type Symbol = Result<Py<PyString>, String>;

pub struct RecordReader {
    /// All keys in order; null, but for the constants that alerts may share.
    pub template: Py<PyDict>,
    pub fields: Vec<FieldReader>,
    /// Constants of which each record gets a copy of its own.
    pub fresh: Vec<(Py<PyString>, Py<PyAny>)>,
}

pub struct FieldReader {
    /// None: to be skipped.
    pub key: Option<Py<PyString>>,
    pub name: String,
    pub node: usize,
}

/// The readers of all nodes of *plan*.
pub fn readers(
    py: Python<'_>,
    plan: &Plan,
    constants: &[Py<PyAny>],
    converters: &[Py<PyAny>],
) -> PyResult<Vec<Reader>> {
    let converted = |node: &Node| {
        let reader = reader(py, &node.kind, constants)?;
        Ok(match node.logical {
            None => reader,
            Some(at) => {
                Reader::Converted { inner: Box::new(reader), converter: converters[at].clone_ref(py) }
            }
        })
    };
    plan.nodes.iter().map(converted).collect()
}

fn reader(py: Python<'_>, kind: &Kind, constants: &[Py<PyAny>]) -> PyResult<Reader> {
    Ok(match kind {
        Kind::Null => Reader::Null,
        Kind::Constant { constant } => {
            let value = constants[*constant].bind(py);
            Reader::Constant { value: value.clone().unbind(), fresh: is_mutable(value) }
        }
        Kind::Nan => Reader::Nan,
        Kind::Boolean => Reader::Boolean,
        Kind::Int { r#as } if ReadAs::is_real(*r#as) => Reader::RealInt,
        Kind::Long { r#as } if ReadAs::is_real(*r#as) => Reader::RealLong,
        Kind::Int { .. } => Reader::Int,
        Kind::Long { .. } => Reader::Long,
        Kind::Float => Reader::Float,
        Kind::Double => Reader::Double,
        Kind::Bytes { r#as: Some(ReadAs::String) } => Reader::String,
        Kind::String { r#as: Some(ReadAs::Bytes) } => Reader::Bytes,
        Kind::Bytes { .. } => Reader::Bytes,
        Kind::String { .. } => Reader::String,
        Kind::Fixed { size } => Reader::Fixed(*size),
        Kind::Enum { symbols, writer_symbols } => Reader::Enum(
            (symbols.iter().enumerate())
                .map(|(at, symbol)| match symbol {
                    Some(symbol) => Ok(PyString::intern(py, symbol).unbind()),
                    None => Err(writers_name(writer_symbols.as_deref(), at)),
                })
                .collect(),
        ),
        Kind::Array { items } => Reader::Array(*items),
        Kind::Map { values } => Reader::Map(*values),
        Kind::Union { branches } => Reader::Union(branches.clone()),
        Kind::Refuse { of, why } => Reader::Refuse { of: *of, why: why.clone() },
        Kind::Scale { of, factor, offset } => Reader::Scale { of: *of, factor: *factor, offset: *offset },
        Kind::Record { .. } => Reader::Record(RecordReader::new(py, kind, constants)?),
    })
}

fn is_mutable(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>()
}

/// What the writer calls the symbol number *at*.
pub fn writers_name(writer_symbols: Option<&[String]>, at: usize) -> String {
    writer_symbols.and_then(|symbols| symbols.get(at)).cloned().unwrap_or_else(|| at.to_string())
}

impl RecordReader {
    fn new(py: Python<'_>, kind: &Kind, constants: &[Py<PyAny>]) -> PyResult<Self> {
        let Kind::Record { fields, absent, order } = kind else {
            return Err(PyValueError::new_err("not a record"));
        };
        let (template, mut fresh) = (PyDict::new(py), Vec::new());
        let key = |name: &String| PyString::intern(py, name).unbind();
        for name in order.iter().chain(fields.iter().filter_map(|field| field.name.as_ref())) {
            template.set_item(key(name), py.None())?;
        }
        for field in absent {
            let constant = constants[field.constant].bind(py);
            template.set_item(key(&field.name), constant)?;
            if is_mutable(constant) {
                fresh.push((key(&field.name), constant.clone().unbind()));
            }
        }
        let field_reader = |field: &crate::decode::plan::Field| FieldReader {
            key: field.name.as_ref().map(key),
            name: field.name.clone().unwrap_or_default(),
            node: field.r#type,
        };
        Ok(RecordReader {
            template: template.unbind(),
            fields: fields.iter().map(field_reader).collect(),
            fresh,
        })
    }
}
