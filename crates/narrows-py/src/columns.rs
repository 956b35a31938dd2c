//! Columns for whatever reads Arrow: by the PyCapsule interface, without a copy.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use narrows_columns::write_parquet;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};

use crate::error::other;

/// A table of columns.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Table {
    /// A table of lists of one length: numbers, truths or text each, with `None` for what is missing.
    #[staticmethod]
    fn of(columns: Vec<(String, Vec<Option<Cell>>)>) -> PyResult<Self> {
        let (fields, arrays): (Vec<_>, Vec<_>) =
            columns.into_iter().map(|(name, cells)| column(&name, &cells)).unzip();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(SchemaRef::clone(&schema), arrays).map_err(other)?;
        Ok(Self::new(schema, vec![batch]))
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Ok(at) = self.schema.index_of(name) else {
            return Err(PyKeyError::new_err(format!(
                "there is no column {name:?}: {}",
                self.column_names().join(", ")
            )));
        };
        let list = PyList::empty(py);
        for batch in &self.batches {
            append(&list, batch.column(at).as_ref())?;
        }
        Ok(list)
    }

    /// All columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for name in self.column_names() {
            all.set_item(&name, self.__getitem__(py, &name)?)?;
        }
        Ok(all)
    }

    /// Writes a Parquet file.
    fn to_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| write_parquet(&path, &self.schema, &self.batches));
        written.map_err(|error| other(format!("cannot write {}: {error}", path.display())))
    }

    /// Arrow's C stream interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may give what it has (the interface is best effort).
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, SchemaRef::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Arrow's C schema interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(other)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// What a list of a table may hold.
#[derive(FromPyObject)]
enum Cell {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

/// A column of the narrowest kind that all its cells are of.
fn column(name: &str, cells: &[Option<Cell>]) -> (Field, ArrayRef) {
    let all = |is: fn(&Cell) -> bool| cells.iter().flatten().all(is);
    let values = || cells.iter().map(Option::as_ref);
    let array: ArrayRef = if all(|cell| matches!(cell, Cell::Truth(_))) {
        let truth = |cell: &Cell| matches!(cell, Cell::Truth(true));
        Arc::new(values().map(|cell| cell.map(truth)).collect::<BooleanArray>())
    } else if all(|cell| matches!(cell, Cell::Whole(_))) {
        let whole =
            |cell: Option<&Cell>| if let Some(Cell::Whole(whole)) = cell { Some(*whole) } else { None };
        Arc::new(values().map(whole).collect::<Int64Array>())
    } else if all(|cell| matches!(cell, Cell::Whole(_) | Cell::Number(_))) {
        let number = |cell: Option<&Cell>| match cell? {
            Cell::Whole(whole) => Some(*whole as f64),
            Cell::Number(number) => Some(*number),
            Cell::Truth(_) | Cell::Text(_) => None,
        };
        Arc::new(values().map(number).collect::<Float64Array>())
    } else {
        let text = |cell: &Cell| match cell {
            Cell::Truth(truth) => truth.to_string(),
            Cell::Whole(whole) => whole.to_string(),
            Cell::Number(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
        };
        Arc::new(values().map(|cell| cell.map(text)).collect::<StringArray>())
    };
    (Field::new(name, array.data_type().clone(), true), array)
}

/// Appends the values of an array to a list; records as dictionaries. There are these types and no others.
fn append(list: &Bound<'_, PyList>, array: &dyn Array) -> PyResult<()> {
    macro_rules! numbers {
        ($kind:ty) => {
            array.as_primitive::<$kind>().iter().try_for_each(|value| list.append(value))
        };
    }
    match array.data_type() {
        DataType::Int64 => numbers!(Int64Type),
        DataType::Float64 => numbers!(Float64Type),
        DataType::Boolean => array.as_boolean().iter().try_for_each(|value| list.append(value)),
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(|value| list.append(value)),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::List(_) => array.as_list::<i32>().iter().try_for_each(|items| {
            let records = PyList::empty(list.py());
            if let Some(items) = items {
                append(&records, items.as_ref())?;
            }
            list.append(records)
        }),
        DataType::Struct(_) => {
            let records: Vec<_> = (0..array.len()).map(|_| PyDict::new(list.py())).collect();
            let array = array.as_struct();
            for (name, column) in array.column_names().into_iter().zip(array.columns()) {
                let values = PyList::empty(list.py());
                append(&values, column.as_ref())?;
                records.iter().zip(values).try_for_each(|(record, value)| record.set_item(name, value))?;
            }
            records.into_iter().try_for_each(|record| list.append(record))
        }
        _ => {
            let words = array.as_dictionary::<Int32Type>();
            let texts = words.values().as_string::<i32>().iter();
            let texts: Vec<_> =
                texts.map(|text| PyString::new(list.py(), text.unwrap_or_default())).collect();
            words.keys().values().iter().try_for_each(|&key| list.append(&texts[key as usize]))
        }
    }
}
