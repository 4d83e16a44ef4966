//! Arrow's C interface: schemas come in by it, batches go out by it, and no copy is made.

use arrow_data::ArrayData;
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::builder::Columns;
use super::compile::refused;

/// A record batch, for `pyarrow.record_batch`.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Batch {
    rows: ArrayData,
}

impl Batch {
    pub fn new(columns: Columns, schema: &Schema, rows: usize) -> PyResult<Self> {
        let columns = columns.finish(schema.fields.len()).map_err(failed)?;
        let rows =
            ArrayData::builder(DataType::Struct(schema.fields.clone())).len(rows).child_data(columns).build();
        Ok(Batch { rows: rows.map_err(failed)? })
    }
}

#[pymethods]
impl Batch {
    /// Return the schema and the rows, as capsules of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema); // a wish, which we may leave to the caller
        let schema = FFI_ArrowSchema::try_from(self.rows.data_type()).map_err(failed)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, FFI_ArrowArray::new(&self.rows), c"arrow_array")?))
    }
}

/// The schema that *source* has by its `__arrow_c_schema__`.
pub fn schema_of(source: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = source.call_method0("__arrow_c_schema__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule of that name holds an ArrowSchema, says Arrow; the capsule outlives this
    // borrow, and no Python code runs meanwhile.
    Schema::try_from(unsafe { pointer.as_ref() }).map_err(failed)
}

fn failed(error: ArrowError) -> PyErr {
    refused(error.to_string())
}
