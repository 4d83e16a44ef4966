//! Columns that grow, each a tree of builders; they refer to each other by index.

use std::sync::Arc;

use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::scalar::Scalar;
use crate::error::{Checked, Error};

/// All builders of a batch; the first ones are its columns.
pub struct Columns {
    builders: Vec<Builder>,
}

struct Builder {
    data_type: DataType,
    nulls: NullBufferBuilder,
    values: Values,
    /// The first of the builders inside; they lie next to each other.
    inside: usize,
}

enum Values {
    Nothing,
    Boolean(BooleanBufferBuilder),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal(Vec<i128>),
    Fixed {
        size: usize,
        bytes: Vec<u8>,
    },
    /// Text or bytes, with the offset at which each ends, and zero in front.
    Bytes {
        ends: Vec<i32>,
        bytes: Vec<u8>,
    },
    /// Lists and maps: where each ends among the items, and zero in front.
    Lists {
        ends: Vec<i32>,
    },
    Struct,
}

impl Columns {
    pub fn new(schema: &Schema) -> Self {
        let mut columns = Columns { builders: Vec::new() };
        columns.add(&schema.fields);
        columns
    }

    /// Add the builders of *fields* side by side, then those inside them; the number of the first.
    fn add(&mut self, fields: &[Arc<Field>]) -> usize {
        let first = self.builders.len();
        self.builders.extend(fields.iter().map(|field| Builder::new(field.data_type())));
        for (at, field) in fields.iter().enumerate() {
            self.builders[first + at].inside = self.add(inner_fields(field.data_type()));
        }
        first
    }

    pub fn data_type(&self, at: usize) -> &DataType {
        &self.builders[at].data_type
    }

    /// The builder of the items of a list, of the entries of a map, of the first field of a struct.
    pub fn inside(&self, at: usize) -> usize {
        self.builders[at].inside
    }

    pub fn append(&mut self, at: usize, scalar: Scalar) -> Checked<()> {
        let builder = &mut self.builders[at];
        builder.values.push(scalar).ok_or_else(|| unfit(&scalar, &builder.data_type))?;
        builder.nulls.append_non_null();
        Ok(())
    }

    pub fn append_null(&mut self, at: usize) {
        let builder = &mut self.builders[at];
        builder.values.push_nothing();
        builder.nulls.append_null();
        if matches!(builder.values, Values::Struct) {
            let inside = builder.inside..builder.inside + inner_fields(&builder.data_type).len();
            inside.for_each(|child| self.append_null(child));
        }
    }

    /// Append a struct whose fields have been, or will be, appended.
    pub fn append_struct(&mut self, at: usize) {
        self.builders[at].nulls.append_non_null();
    }

    /// Append a list or map of the items that were appended since the last.
    pub fn append_list(&mut self, at: usize) -> Checked<()> {
        let items = self.len(self.builders[at].inside);
        let builder = &mut self.builders[at];
        if let Values::Lists { ends } = &mut builder.values {
            ends.push(
                i32::try_from(items)
                    .map_err(|_| Error::new(format!("{items} items are over what a column holds")))?,
            );
        }
        builder.nulls.append_non_null();
        Ok(())
    }

    fn len(&self, at: usize) -> usize {
        self.builders[at].nulls.len()
    }

    /// The finished columns.
    pub fn finish(mut self, count: usize) -> Result<Vec<ArrayData>, ArrowError> {
        (0..count).map(|at| self.finish_one(at)).collect()
    }

    fn finish_one(&mut self, at: usize) -> Result<ArrayData, ArrowError> {
        let inside = self.builders[at].inside;
        let count = inner_fields(&self.builders[at].data_type).len();
        let children = (inside..inside + count).map(|child| self.finish_one(child));
        let children = children.collect::<Result<Vec<_>, _>>()?;
        let length = self.len(at);
        let builder = &mut self.builders[at];
        let values = std::mem::replace(&mut builder.values, Values::Nothing);
        let nulls = builder.nulls.finish().filter(|_| !matches!(values, Values::Nothing));
        ArrayData::builder(builder.data_type.clone())
            .len(length)
            .nulls(nulls)
            .buffers(values.into_buffers())
            .child_data(children)
            .build()
    }
}

impl Builder {
    fn new(data_type: &DataType) -> Self {
        let (data_type, values) = (data_type.clone(), Values::new(data_type));
        Builder { data_type, nulls: NullBufferBuilder::new(0), values, inside: 0 }
    }
}

impl Values {
    fn new(data_type: &DataType) -> Self {
        use DataType::*;
        match data_type {
            Boolean => Values::Boolean(BooleanBufferBuilder::new(0)),
            Int32 | Date32 | Time32(_) => Values::Int32(Vec::new()),
            Int64 | Time64(_) | Timestamp(..) => Values::Int64(Vec::new()),
            Float32 => Values::Float32(Vec::new()),
            Float64 => Values::Float64(Vec::new()),
            Decimal128(..) => Values::Decimal(Vec::new()),
            FixedSizeBinary(size) => Values::Fixed { size: *size as usize, bytes: Vec::new() },
            Utf8 | Binary => Values::Bytes { ends: vec![0], bytes: Vec::new() },
            List(_) | Map(..) => Values::Lists { ends: vec![0] },
            Struct(_) => Values::Struct,
            _ => Values::Nothing,
        }
    }

    /// Append a value; None where it is not of this kind.
    fn push(&mut self, scalar: Scalar) -> Option<()> {
        match (self, scalar) {
            (Values::Boolean(values), Scalar::Boolean(value)) => values.append(value),
            (Values::Int32(values), Scalar::Integer(value)) => values.push(value.try_into().ok()?),
            (Values::Int64(values), Scalar::Integer(value)) => values.push(value),
            (Values::Float32(values), Scalar::Real(value)) => values.push(value as f32),
            (Values::Float64(values), Scalar::Real(value)) => values.push(value),
            (Values::Decimal(values), Scalar::Decimal(value)) => values.push(value),
            (Values::Fixed { size, bytes }, Scalar::Bytes(value)) if value.len() == *size => {
                bytes.extend_from_slice(value);
            }
            (Values::Bytes { ends, bytes }, Scalar::Bytes(value)) => {
                let end = i32::try_from(bytes.len() + value.len()).ok()?;
                bytes.extend_from_slice(value);
                ends.push(end);
            }
            _ => return None,
        }
        Some(())
    }

    fn push_nothing(&mut self) {
        match self {
            Values::Nothing | Values::Struct => {}
            Values::Boolean(values) => values.append(false),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal(values) => values.push(0),
            Values::Fixed { size, bytes } => bytes.resize(bytes.len() + *size, 0),
            Values::Bytes { ends, .. } | Values::Lists { ends } => {
                ends.push(ends.last().copied().unwrap_or(0))
            }
        }
    }

    fn into_buffers(self) -> Vec<Buffer> {
        match self {
            Values::Nothing | Values::Struct => vec![],
            Values::Boolean(mut values) => vec![values.finish().into_inner()],
            Values::Int32(values) => vec![Buffer::from_vec(values)],
            Values::Int64(values) => vec![Buffer::from_vec(values)],
            Values::Float32(values) => vec![Buffer::from_vec(values)],
            Values::Float64(values) => vec![Buffer::from_vec(values)],
            Values::Decimal(values) => vec![Buffer::from_vec(values)],
            Values::Fixed { bytes, .. } => vec![Buffer::from_vec(bytes)],
            Values::Bytes { ends, bytes } => vec![Buffer::from_vec(ends), Buffer::from_vec(bytes)],
            Values::Lists { ends } => vec![Buffer::from_vec(ends)],
        }
    }
}

/// The fields inside a type: a list's items, a map's entries, a struct's fields.
pub fn inner_fields(data_type: &DataType) -> &[Arc<Field>] {
    match data_type {
        DataType::List(field) | DataType::Map(field, _) => std::slice::from_ref(field),
        DataType::Struct(fields) => fields,
        _ => &[],
    }
}

fn unfit(scalar: &Scalar, data_type: &DataType) -> Box<Error> {
    match scalar {
        Scalar::Bytes(bytes) if !matches!(data_type, DataType::FixedSizeBinary(_)) => Error::new(format!(
            "{} bytes more are over the 2 GiB that a column holds; take fewer messages",
            bytes.len()
        )),
        _ => Error::new(format!("{scalar} does not go into a column of {data_type}")),
    }
}
