//! Many bodies to Arrow columns: `Batcher`.

mod builder;
mod compile;
mod constant;
mod export;
mod fill;
mod scalar;

use arrow_schema::Schema;
use pyo3::prelude::*;

use crate::buffer::MessageBuffer;
use crate::decode::decode_error;
use crate::decode::plan::Plan;
use builder::Columns;
use compile::Program;
use export::Batch;

/// Decodes chosen fields of many bodies into Arrow columns.  Safe to share between threads.
///
/// Args:
///     plan: The plan, as JSON; fields that are not on a path are skipped.
///     paths: For each column, the names of the fields that lead to it.
///     constants: Values of the fields that the writer lacks.
///     schema: The columns' Arrow schema, as any object with `__arrow_c_schema__`.
///
/// Raises:
///     ValueError: It is no plan, or its values do not go into such columns.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Batcher {
    plan: Plan,
    program: Program,
    schema: Schema,
}

#[pymethods]
impl Batcher {
    #[new]
    fn new(
        plan: &str,
        paths: Vec<Vec<String>>,
        constants: Vec<Bound<'_, PyAny>>,
        schema: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let plan = Plan::parse(plan, constants.len(), usize::MAX)?;
        let schema = export::schema_of(schema)?;
        let program = Program::compile(&plan, &schema, &paths, &constants)?;
        Ok(Batcher { plan, program, schema })
    }

    /// Return one row per body, as an object with `__arrow_c_array__`.  Other threads run
    /// meanwhile.
    ///
    /// Raises:
    ///     DecodeError: A body is cut off or malformed; its attribute `message` is that body's
    ///         number.
    fn batch(&self, py: Python<'_>, bodies: Vec<Bound<'_, PyAny>>) -> PyResult<Batch> {
        let bodies = bodies.iter().map(MessageBuffer::new).collect::<PyResult<Vec<_>>>()?;
        let bytes: Vec<&[u8]> = bodies.iter().map(MessageBuffer::bytes).collect();
        let filled = py.detach(|| {
            let mut columns = Columns::new(&self.schema);
            for (number, body) in bytes.iter().enumerate() {
                let (end, error) = self.program.fill(&self.plan, body, &mut columns);
                error.map_err(|error| (number, end, error))?;
            }
            Ok(columns)
        });
        match filled {
            Ok(columns) => Batch::new(columns, &self.schema, bytes.len()),
            Err((number, at, error)) => {
                let error = decode_error(*error, at);
                error.value(py).setattr("message", number)?;
                Err(error)
            }
        }
    }
}
