//! From a plan and the paths of columns to what is done with each node's values.

use arrow_schema::{DataType, Schema, TimeUnit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::builder::{Columns, inner_fields};
use super::constant::{Constant, at_path};
use crate::decode::plan::{Absent, Field, Kind, Plan};

/// What to do with the values of a node.
pub enum Op {
    /// Nobody asked for them.
    Skip {
        node: usize,
    },
    /// They go, one by one, into all these builders.
    Scalar {
        node: usize,
        into: Vec<Target>,
    },
    Null {
        into: Vec<usize>,
    },
    Nan {
        into: Vec<usize>,
    },
    Constants {
        into: Vec<(usize, Constant)>,
    },
    Scale {
        node: usize,
        factor: f64,
        offset: f64,
        into: Vec<Target>,
    },
    Union {
        branches: Vec<usize>,
    },
    /// A list of each of *lists* for each array; *least* is what an item takes. [byte]
    Array {
        lists: Vec<usize>,
        items: usize,
        least: usize,
    },
    /// As arrays, with the builders of their keys and entries.
    Map {
        maps: Vec<usize>,
        values: usize,
        least: usize,
    },
    Record {
        structs: Vec<usize>,
        fields: Vec<(String, usize)>,
        constants: Vec<(usize, Constant)>,
    },
    Refuse {
        node: usize,
        why: String,
    },
}

/// A builder, and how many of its units one of the value's is.
#[derive(Clone, Copy)]
pub struct Target {
    pub builder: usize,
    pub times: i64,
    pub over: i64,
}

/// Operations, which refer to each other by index.
pub struct Program {
    pub ops: Vec<Op>,
    pub root: usize,
}

/// A column, or a part of one, that wants what lies at the end of *path*.
#[derive(Clone, Copy)]
struct Ask<'a> {
    builder: usize,
    path: &'a [String],
}

struct Compiler<'a, 'py> {
    plan: &'a Plan,
    columns: Columns,
    constants: &'a [Bound<'py, PyAny>],
    ops: Vec<Op>,
}

impl Program {
    pub fn compile(
        plan: &Plan,
        schema: &Schema,
        paths: &[Vec<String>],
        constants: &[Bound<'_, PyAny>],
    ) -> PyResult<Self> {
        if paths.len() != schema.fields.len() {
            return Err(refused("as many paths as columns are needed"));
        }
        let asks: Vec<_> = paths.iter().enumerate().map(|(builder, path)| Ask { builder, path }).collect();
        let mut compiler = Compiler { plan, columns: Columns::new(schema), constants, ops: Vec::new() };
        let root = compiler.node(plan.root, &asks)?;
        Ok(Program { ops: compiler.ops, root })
    }
}

impl<'a> Compiler<'a, '_> {
    fn add(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn node(&mut self, node: usize, asks: &[Ask<'a>]) -> PyResult<usize> {
        let builders = || asks.iter().map(|ask| ask.builder).collect();
        let least = |inner: usize| self.plan.least[inner];
        let op = match self.plan.kind(node) {
            _ if asks.is_empty() => Op::Skip { node },
            Kind::Null => Op::Null { into: builders() },
            Kind::Nan => Op::Nan { into: builders() },
            Kind::Constant { constant } => Op::Constants { into: self.constants(*constant, asks)? },
            Kind::Refuse { of, why } => Op::Refuse { node: *of, why: why.clone() },
            Kind::Scale { of, factor, offset } => {
                Op::Scale { node: *of, factor: *factor, offset: *offset, into: self.targets(node, asks)? }
            }
            Kind::Union { branches } => {
                let branches = branches.iter().map(|&branch| self.node(branch, asks));
                Op::Union { branches: branches.collect::<PyResult<_>>()? }
            }
            Kind::Array { items } => {
                let least = least(*items);
                Op::Array { lists: builders(), items: self.node(*items, &self.inside(asks)?)?, least }
            }
            Kind::Map { values } => {
                let least = least(*values).saturating_add(1);
                Op::Map { maps: builders(), values: self.node(*values, &self.map_values(asks)?)?, least }
            }
            Kind::Record { fields, absent, .. } => self.record(fields, absent, asks)?,
            _ => Op::Scalar { node, into: self.targets(node, asks)? },
        };
        Ok(self.add(op))
    }

    /// What is asked of an array's items.
    fn inside(&self, asks: &[Ask<'a>]) -> PyResult<Vec<Ask<'a>>> {
        let item = |ask: &Ask<'a>| match self.columns.data_type(ask.builder) {
            DataType::List(_) => Ok(Ask { builder: self.columns.inside(ask.builder), path: ask.path }),
            other => Err(refused(format!("an array does not go into a column of {other}"))),
        };
        asks.iter().map(item).collect()
    }

    /// What is asked of a map's values: they lie second in the entries of its builder.
    fn map_values(&self, asks: &[Ask<'a>]) -> PyResult<Vec<Ask<'a>>> {
        let value = |ask: &Ask<'a>| match self.columns.data_type(ask.builder) {
            DataType::Map(..) if ask.path.is_empty() => {
                let entries = self.columns.inside(ask.builder);
                Ok(Ask { builder: self.columns.inside(entries) + 1, path: ask.path })
            }
            other => Err(refused(format!("a map does not go into a column of {other}"))),
        };
        asks.iter().map(value).collect()
    }

    fn record(&mut self, fields: &'a [Field], absent: &'a [Absent], asks: &[Ask<'a>]) -> PyResult<Op> {
        let (mut made, mut constants, mut known) = (Vec::new(), Vec::new(), 0);
        for field in fields {
            let name = field.name.as_deref();
            let wanted = name.map_or_else(Vec::new, |name| self.in_field(name, asks));
            known += wanted.len();
            made.push((name.unwrap_or("?").to_owned(), self.node(field.r#type, &wanted)?));
        }
        for field in absent {
            let wanted = self.in_field(&field.name, asks);
            known += wanted.len();
            constants.extend(self.constants(field.constant, &wanted)?);
        }
        let structs: Vec<_> = asks.iter().filter(|ask| ask.path.is_empty()).map(|ask| ask.builder).collect();
        let wanted = |at: &usize| inner_fields(self.columns.data_type(*at)).len();
        if known != structs.iter().map(wanted).sum::<usize>() + asks.len() - structs.len() {
            return Err(refused("a field that a column wants is not in the plan"));
        }
        Ok(Op::Record { structs, fields: made, constants })
    }

    /// What is asked of the field *name* of a record.
    fn in_field(&self, name: &str, asks: &[Ask<'a>]) -> Vec<Ask<'a>> {
        let wanted = |ask: &Ask<'a>| match ask.path.split_first() {
            Some((first, rest)) => (first == name).then_some(Ask { builder: ask.builder, path: rest }),
            None => {
                let fields = inner_fields(self.columns.data_type(ask.builder));
                let at = fields.iter().position(|field| field.name() == name)?;
                Some(Ask { builder: self.columns.inside(ask.builder) + at, path: ask.path })
            }
        };
        asks.iter().filter_map(wanted).collect()
    }

    /// What goes into each builder that asks for the constant number *at*.
    fn constants(&self, at: usize, asks: &[Ask]) -> PyResult<Vec<(usize, Constant)>> {
        let constant = |ask: &Ask| {
            let value = at_path(&self.constants[at], ask.path)?;
            Ok((ask.builder, Constant::new(&value, self.columns.data_type(ask.builder))?))
        };
        asks.iter().map(constant).collect()
    }

    fn targets(&self, node: usize, asks: &[Ask]) -> PyResult<Vec<Target>> {
        let logical = self.plan.nodes[node].logical_name.as_deref().unwrap_or_default();
        let target = |ask: &Ask| {
            let (times, over) = rate(logical, self.columns.data_type(ask.builder));
            if !ask.path.is_empty() {
                return Err(refused(format!("there is no record at {}", ask.path.join("."))));
            }
            Ok(Target { builder: ask.builder, times, over })
        };
        asks.iter().map(target).collect()
    }
}

/// How many units of a column, over how many of the writer's, are equal times.
fn rate(logical_name: &str, column: &DataType) -> (i64, i64) {
    let written = match logical_name.rsplit_once('-') {
        Some((_, "millis")) => 1_000,
        Some((_, "micros")) => 1_000_000,
        _ => return (1, 1),
    };
    match column {
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            let read = if *unit == TimeUnit::Millisecond { 1_000 } else { 1_000_000 };
            if read >= written { (read / written, 1) } else { (1, written / read) }
        }
        _ => (1, 1),
    }
}

pub fn refused(why: impl Into<String>) -> PyErr {
    PyValueError::new_err(format!("columns: {}", why.into()))
}
