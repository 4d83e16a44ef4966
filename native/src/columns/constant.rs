//! Values of fields that the writer lacks, made ready to be appended without Python.

use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::builder::{Columns, inner_fields};
use super::compile::refused;
use super::scalar::Scalar;
use crate::error::Checked;

pub enum Constant {
    Null,
    Boolean(bool),
    Integer(i64),
    Real(f64),
    Bytes(Vec<u8>),
    Decimal(i128),
    List(Vec<Constant>),
    Struct(Vec<Constant>),
    Map(Vec<(String, Constant)>),
}

impl Constant {
    /// Take *value*, as it is decoded, for a column of *data_type*.
    pub fn new(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<Self> {
        use DataType::*;
        if value.is_none() {
            return Ok(Constant::Null);
        }
        Ok(match data_type {
            Boolean => Constant::Boolean(value.extract()?),
            Int32 | Int64 => Constant::Integer(value.extract()?),
            Float32 | Float64 => Constant::Real(value.extract()?),
            Utf8 => Constant::Bytes(value.str()?.to_str()?.as_bytes().to_vec()), // uuids, too
            Binary | FixedSizeBinary(_) => Constant::Bytes(value.extract()?),
            Decimal128(_, scale) => Constant::Decimal(digits(value, *scale)?),
            Date32 | Timestamp(..) | Time32(_) | Time64(_) => Constant::Integer(time(value, data_type)?),
            List(item) => Constant::List(
                value
                    .try_iter()?
                    .map(|one| Constant::new(&one?, item.data_type()))
                    .collect::<PyResult<_>>()?,
            ),
            Struct(fields) => Constant::Struct(
                (fields.iter())
                    .map(|field| Constant::new(&value.get_item(field.name())?, field.data_type()))
                    .collect::<PyResult<_>>()?,
            ),
            Map(entries, _) => Constant::map(value, inner_fields(entries.data_type())[1].data_type())?,
            other => return Err(refused(format!("{value} does not go into a column of {other}"))),
        })
    }

    fn map(value: &Bound<'_, PyAny>, values: &DataType) -> PyResult<Self> {
        let entries = value.cast::<PyDict>()?.iter();
        let entries = entries.map(|(key, value)| Ok((key.extract()?, Constant::new(&value, values)?)));
        Ok(Constant::Map(entries.collect::<PyResult<_>>()?))
    }

    pub fn append(&self, columns: &mut Columns, at: usize) -> Checked<()> {
        let scalar = match self {
            Constant::Null => {
                columns.append_null(at);
                return Ok(());
            }
            Constant::List(items) => {
                let inside = columns.inside(at);
                items.iter().try_for_each(|item| item.append(columns, inside))?;
                return columns.append_list(at);
            }
            Constant::Struct(fields) => {
                let inside = columns.inside(at);
                fields.iter().enumerate().try_for_each(|(n, field)| field.append(columns, inside + n))?;
                columns.append_struct(at);
                return Ok(());
            }
            Constant::Map(entries) => return append_map(entries, columns, at),
            Constant::Boolean(value) => Scalar::Boolean(*value),
            Constant::Integer(value) => Scalar::Integer(*value),
            Constant::Real(value) => Scalar::Real(*value),
            Constant::Bytes(value) => Scalar::Bytes(value),
            Constant::Decimal(value) => Scalar::Decimal(*value),
        };
        columns.append(at, scalar)
    }
}

fn append_map(entries: &[(String, Constant)], columns: &mut Columns, at: usize) -> Checked<()> {
    let pairs = columns.inside(at);
    let keys = columns.inside(pairs);
    for (key, value) in entries {
        columns.append(keys, Scalar::Bytes(key.as_bytes()))?;
        value.append(columns, keys + 1)?;
        columns.append_struct(pairs);
    }
    columns.append_list(at)
}

/// What lies at *path* in a value; through lists, of each item.
pub fn at_path<'py>(value: &Bound<'py, PyAny>, path: &[String]) -> PyResult<Bound<'py, PyAny>> {
    let Some((first, rest)) = path.split_first() else { return Ok(value.clone()) };
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(|item| at_path(&item, path)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(value.py(), items)?.into_any());
    }
    if value.is_none() { Ok(value.clone()) } else { at_path(&value.get_item(first)?, rest) }
}

/// The digits of a `decimal.Decimal` without their point, whatever Python's decimal context.
fn digits(value: &Bound<'_, PyAny>, scale: i8) -> PyResult<i128> {
    let (over, under): (Bound<PyAny>, Bound<PyAny>) = value.call_method0("as_integer_ratio")?.extract()?;
    over.mul(10_i128.pow(scale.unsigned_abs().into()))?.floor_div(under)?.extract()
}

/// A `datetime`, `date` or `time`, or the number that stands for it, in the units of its column.
fn time(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<i64> {
    if let Ok(number) = value.extract() {
        return Ok(number);
    }
    let part = |name: &str| value.getattr(name)?.extract::<i64>();
    let days = || Ok::<_, PyErr>(value.call_method0("toordinal")?.extract::<i64>()? - UNIX_EPOCH);
    let seconds = || Ok::<_, PyErr>(part("hour")? * 3_600 + part("minute")? * 60 + part("second")?);
    let micros = |days: i64| Ok((days * 86_400 + seconds()?) * 1_000_000 + part("microsecond")?);
    match data_type {
        DataType::Date32 => days(),
        DataType::Timestamp(TimeUnit::Millisecond, _) => Ok(micros(days()?)?.div_euclid(1_000)),
        DataType::Timestamp(..) => micros(days()?),
        DataType::Time32(_) => Ok(micros(0)? / 1_000),
        _ => micros(0),
    }
}

/// The first of January 1970 as Python counts days.
const UNIX_EPOCH: i64 = 719_163;
