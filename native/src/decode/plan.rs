//! The plan of a decoding, as Python hands it over: a tree that follows the writer's bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::cursor::Cursor;
use crate::error::{Checked, Error};

/// Nodes refer to each other by index, so that recursion is plain.
#[derive(Deserialize)]
pub struct Plan {
    pub root: usize,
    pub nodes: Vec<Node>,
    /// Bytes may follow: what lies behind the last chosen field is not looked at.
    #[serde(default)]
    pub partial: bool,
    /// The fewest bytes that each node's values take.
    #[serde(skip)]
    pub least: Vec<usize>,
    /// How each node's values are stepped over.
    #[serde(skip)]
    pub strides: Vec<Stride>,
}

#[derive(Deserialize)]
pub struct Node {
    #[serde(flatten)]
    pub kind: Kind,
    /// Index of the converter that makes the value of a logical type.
    pub logical: Option<usize>,
    pub logical_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Kind {
    Null,
    Boolean,
    Int {
        r#as: Option<ReadAs>,
    },
    Long {
        r#as: Option<ReadAs>,
    },
    Float,
    Double,
    Bytes {
        r#as: Option<ReadAs>,
    },
    String {
        r#as: Option<ReadAs>,
    },
    Fixed {
        size: usize,
    },
    Enum {
        symbols: Vec<Option<String>>,
        writer_symbols: Option<Vec<String>>,
    },
    Array {
        items: usize,
    },
    Map {
        values: usize,
    },
    Union {
        branches: Vec<usize>,
    },
    Record {
        fields: Vec<Field>,
        #[serde(default)]
        absent: Vec<Absent>,
        /// The reader's order, where it is another than fields and then absent.
        #[serde(default)]
        order: Vec<String>,
    },
    Refuse {
        why: String,
        of: usize,
    },
    Nan,
    /// Reads no bytes; gives one of the constants.
    Constant {
        constant: usize,
    },
    Scale {
        of: usize,
        factor: f64,
        offset: f64,
    },
}

/// How to step over a value; small, for there are thousands in an alert.
pub enum Stride {
    /// So many bytes.
    Fixed(usize),
    Varint,
    Bytes,
    /// A union of two types of fixed size, as nullable numbers are.
    Either([usize; 2]),
    /// As the node itself says.
    Varying,
}

/// What the reader calls it.
#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum ReadAs {
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
}

impl ReadAs {
    pub fn is_real(this: Option<ReadAs>) -> bool {
        matches!(this, Some(ReadAs::Float | ReadAs::Double))
    }
}

/// A field in the writer's order; without a name its bytes are skipped.
#[derive(Deserialize)]
pub struct Field {
    pub name: Option<String>,
    pub r#type: usize,
}

/// A field that the writer lacks: the index of its value among the constants.
#[derive(Deserialize)]
pub struct Absent {
    pub name: String,
    pub constant: usize,
}

impl Plan {
    /// Parse *document*, and see that every index in it leads somewhere.
    pub fn parse(document: &str, constants: usize, converters: usize) -> PyResult<Plan> {
        let mut plan: Plan = serde_json::from_str(document)
            .map_err(|error| PyValueError::new_err(format!("plan: {error}")))?;
        let nodes = plan.nodes.len();
        let sound = plan.nodes.iter().all(|node| {
            node.kind.children().iter().all(|&child| child < nodes)
                && node.kind.constants().iter().all(|&constant| constant < constants)
                && node.logical.is_none_or(|converter| converter < converters)
        });
        if !sound || plan.root >= nodes {
            return Err(PyValueError::new_err("plan: an index leads nowhere"));
        }
        plan.least = least_sizes(&plan.nodes);
        plan.strides = plan.nodes.iter().map(|node| node.kind.stride(&plan.nodes)).collect();
        Ok(plan)
    }

    pub fn kind(&self, node: usize) -> &Kind {
        &self.nodes[node].kind
    }

    /// Refuse bytes behind the end, but where the plan may stop early.
    pub fn check_end(&self, cursor: &Cursor) -> Checked<()> {
        if self.partial || cursor.left() == 0 {
            return Ok(());
        }
        Err(Box::new(Error::Trailing { end: cursor.at, size: cursor.body.len() }))
    }
}

impl Kind {
    /// The nodes that this one is made of.
    pub fn children(&self) -> Vec<usize> {
        match self {
            Kind::Array { items: one } | Kind::Map { values: one } => vec![*one],
            Kind::Refuse { of, .. } | Kind::Scale { of, .. } => vec![*of],
            Kind::Union { branches } => branches.clone(),
            Kind::Record { fields, .. } => fields.iter().map(|field| field.r#type).collect(),
            _ => vec![],
        }
    }

    fn constants(&self) -> Vec<usize> {
        match self {
            Kind::Record { absent, .. } => absent.iter().map(|field| field.constant).collect(),
            Kind::Constant { constant } => vec![*constant],
            _ => vec![],
        }
    }

    fn stride(&self, nodes: &[Node]) -> Stride {
        let size = |branch: usize| nodes[branch].kind.size();
        match self {
            Kind::Int { .. } | Kind::Long { .. } | Kind::Enum { .. } => Stride::Varint,
            Kind::Bytes { .. } | Kind::String { .. } => Stride::Bytes,
            Kind::Union { branches } => match *branches.as_slice() {
                [first, second] => match (size(first), size(second)) {
                    (Some(first), Some(second)) => Stride::Either([first, second]),
                    _ => Stride::Varying,
                },
                _ => Stride::Varying,
            },
            _ => self.size().map_or(Stride::Varying, Stride::Fixed),
        }
    }

    /// How many bytes a value takes, if that is always the same.
    fn size(&self) -> Option<usize> {
        match self {
            Kind::Null | Kind::Nan | Kind::Constant { .. } => Some(0),
            Kind::Boolean => Some(1),
            Kind::Float => Some(4),
            Kind::Double => Some(8),
            Kind::Fixed { size } => Some(*size),
            _ => None,
        }
    }

    fn least(&self, known: &[usize]) -> usize {
        match self {
            Kind::Union { branches } => {
                1 + branches.iter().map(|&branch| known[branch]).min().unwrap_or_default()
            }
            Kind::Refuse { of, .. } | Kind::Scale { of, .. } => known[*of],
            Kind::Record { fields, .. } => {
                fields.iter().fold(0, |sum, field| sum.saturating_add(known[field.r#type]))
            }
            _ => self.size().unwrap_or(1),
        }
    }
}

/// Sizes grow from nothing until they stay: records may contain themselves.
fn least_sizes(nodes: &[Node]) -> Vec<usize> {
    let mut known = vec![0; nodes.len()];
    for _ in 0..nodes.len().min(64) {
        let next: Vec<usize> = nodes.iter().map(|node| node.kind.least(&known).min(1 << 32)).collect();
        if next == known {
            break;
        }
        known = next;
    }
    known
}
