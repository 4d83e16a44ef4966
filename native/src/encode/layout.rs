//! The layout of a record to be written, as Python hands it over, made ready: names interned,
//! defaults bound.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Deserialize;

/// What to write, node by node; nodes refer to each other by index.
pub struct Layout {
    pub root: usize,
    pub nodes: Vec<Node>,
    /// Full names of named types, else what the type is called.
    pub names: Vec<String>,
}

pub enum Node {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed {
        size: usize,
    },
    Enum {
        symbols: Vec<String>,
        indices: Py<PyDict>,
    },
    Array {
        items: usize,
    },
    Map {
        values: usize,
    },
    /// Null and one other type, which is nearly every union.
    Nullable {
        null: u8,
        other: usize,
        branches: [usize; 2],
    },
    Union {
        branches: Vec<usize>,
    },
    Record {
        name: String,
        fields: Vec<Field>,
    },
    Logical {
        inner: Box<Node>,
        converter: Py<PyAny>,
        kind: String,
    },
}

pub struct Field {
    pub name: String,
    pub key: Py<PyString>,
    pub node: usize,
    pub default: Option<Py<PyAny>>,
}

#[derive(Deserialize)]
struct Document {
    root: usize,
    nodes: Vec<RawNode>,
}

#[derive(Deserialize)]
struct RawNode {
    #[serde(flatten)]
    kind: RawKind,
    logical: Option<usize>,
    logical_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum RawKind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed { size: usize, name: String },
    Enum { symbols: Vec<String>, name: String },
    Array { items: usize },
    Map { values: usize },
    Union { branches: Vec<usize> },
    Record { name: String, fields: Vec<RawField> },
}

#[derive(Deserialize)]
struct RawField {
    name: String,
    r#type: usize,
    default: Option<usize>,
}

impl Layout {
    /// Parse *document*, and see that every index in it leads somewhere.
    pub fn parse(
        py: Python<'_>,
        document: &str,
        constants: &[Py<PyAny>],
        converters: &[Py<PyAny>],
    ) -> PyResult<Layout> {
        let raw: Document = serde_json::from_str(document)
            .map_err(|error| PyValueError::new_err(format!("layout: {error}")))?;
        let sound = raw.nodes.iter().all(|node| node.is_sound(raw.nodes.len(), constants, converters));
        if !sound || raw.root >= raw.nodes.len() {
            return Err(PyValueError::new_err("layout: an index leads nowhere"));
        }
        let nodes = raw.nodes.iter().map(|node| node.ready(py, &raw.nodes, constants, converters));
        let names = raw.nodes.iter().map(|node| node.kind.name().to_owned()).collect();
        Ok(Layout { root: raw.root, nodes: nodes.collect::<PyResult<_>>()?, names })
    }

    /// The node itself, without its logical type.
    pub fn bare(&self, node: usize) -> &Node {
        match &self.nodes[node] {
            Node::Logical { inner, .. } => inner,
            bare => bare,
        }
    }
}

impl RawNode {
    fn is_sound(&self, nodes: usize, constants: &[Py<PyAny>], converters: &[Py<PyAny>]) -> bool {
        let below = |at: &usize| *at < nodes;
        let inside = match &self.kind {
            RawKind::Array { items: one } | RawKind::Map { values: one } => below(one),
            RawKind::Union { branches } => branches.iter().all(below),
            RawKind::Record { fields, .. } => fields.iter().all(|field| {
                below(&field.r#type) && field.default.is_none_or(|default| default < constants.len())
            }),
            _ => true,
        };
        inside && self.logical.is_none_or(|converter| converter < converters.len())
    }

    fn ready(
        &self,
        py: Python<'_>,
        nodes: &[RawNode],
        constants: &[Py<PyAny>],
        converters: &[Py<PyAny>],
    ) -> PyResult<Node> {
        let node = self.kind.ready(py, nodes, constants)?;
        Ok(match self.logical {
            None => node,
            Some(at) => {
                let name = self.logical_name.as_deref().unwrap_or_default();
                let kind = name.split_once('-').map_or(name, |(_, kind)| kind).to_owned();
                Node::Logical { inner: Box::new(node), converter: converters[at].clone_ref(py), kind }
            }
        })
    }
}

impl RawKind {
    fn ready(&self, py: Python<'_>, nodes: &[RawNode], constants: &[Py<PyAny>]) -> PyResult<Node> {
        Ok(match self {
            RawKind::Null => Node::Null,
            RawKind::Boolean => Node::Boolean,
            RawKind::Int => Node::Int,
            RawKind::Long => Node::Long,
            RawKind::Float => Node::Float,
            RawKind::Double => Node::Double,
            RawKind::Bytes => Node::Bytes,
            RawKind::String => Node::String,
            RawKind::Fixed { size, .. } => Node::Fixed { size: *size },
            RawKind::Enum { symbols, .. } => {
                let indices = PyDict::new(py);
                (symbols.iter().enumerate()).try_for_each(|(at, symbol)| indices.set_item(symbol, at))?;
                Node::Enum { symbols: symbols.clone(), indices: indices.unbind() }
            }
            RawKind::Array { items } => Node::Array { items: *items },
            RawKind::Map { values } => Node::Map { values: *values },
            RawKind::Union { branches } => union(branches, nodes),
            RawKind::Record { name, fields } => Node::Record {
                name: name.clone(),
                fields: fields.iter().map(|field| field.ready(py, constants)).collect(),
            },
        })
    }

    /// As fastavro calls it in a union.
    fn name(&self) -> &str {
        match self {
            RawKind::Null => "null",
            RawKind::Boolean => "boolean",
            RawKind::Int => "int",
            RawKind::Long => "long",
            RawKind::Float => "float",
            RawKind::Double => "double",
            RawKind::Bytes => "bytes",
            RawKind::String => "string",
            RawKind::Array { .. } => "array",
            RawKind::Map { .. } => "map",
            RawKind::Union { .. } => "union",
            RawKind::Fixed { name, .. } | RawKind::Enum { name, .. } | RawKind::Record { name, .. } => name,
        }
    }
}

impl RawField {
    fn ready(&self, py: Python<'_>, constants: &[Py<PyAny>]) -> Field {
        Field {
            name: self.name.clone(),
            key: PyString::intern(py, &self.name).unbind(),
            node: self.r#type,
            default: self.default.map(|at| constants[at].clone_ref(py)),
        }
    }
}

fn union(branches: &[usize], nodes: &[RawNode]) -> Node {
    let is_null = |branch: usize| matches!(nodes[branch].kind, RawKind::Null);
    match *branches {
        [null, other] if is_null(null) => Node::Nullable { null: 0, other, branches: [null, other] },
        [other, null] if is_null(null) => Node::Nullable { null: 1, other, branches: [other, null] },
        _ => Node::Union { branches: branches.to_vec() },
    }
}
