//! The values of Arrow columns as Parquet stores them: leaf by leaf, with levels where values may be missing or repeat.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, StringArray};
use arrow_schema::{DataType, Field};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

/// The values of a leaf.
#[derive(Debug)]
pub(super) struct Leaf {
    values: Values,
    levels: Levels,
}

/// What the format calls definition and repetition levels; none where each row has one value. Lists are never missing, nor is
/// what they hold, so no level is above 1.
#[derive(Clone, Debug, Default)]
struct Levels {
    definition: Option<Vec<i16>>,
    repetition: Option<Vec<i16>>,
}

impl Levels {
    fn of_lists(lengths: impl Iterator<Item = usize>) -> Self {
        let (mut definition, mut repetition) = (Vec::new(), Vec::new());
        for length in lengths {
            // An empty list has an entry, too.
            definition.push(i16::from(length > 0));
            repetition.push(0);
            for levels in [&mut definition, &mut repetition] {
                levels.extend(std::iter::repeat_n(1, length.saturating_sub(1)));
            }
        }
        Self { definition: Some(definition), repetition: Some(repetition) }
    }
}

#[derive(Debug)]
enum Values {
    Truths(Vec<bool>),
    Small(Vec<i32>),
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Leaf {
    /// Appends the leaves of a column.
    ///
    /// # Errors
    /// If it has a type that no table of narrows has.
    pub(super) fn append(
        field: &Field,
        column: &dyn Array,
        leaves: &mut Vec<Self>,
    ) -> Result<(), ParquetError> {
        match field.data_type() {
            DataType::List(item) => {
                let lists = column.as_list::<i32>();
                let from = leaves.len();
                Self::append(item, lists.values().as_ref(), leaves)?;
                let levels = Levels::of_lists(lists.offsets().lengths());
                leaves[from..].iter_mut().for_each(|leaf| leaf.levels = levels.clone());
                Ok(())
            }
            DataType::Struct(fields) => {
                let mut columns = fields.iter().zip(column.as_struct().columns());
                columns.try_for_each(|(field, column)| Self::append(field, column.as_ref(), leaves))
            }
            _ => {
                let there = || (0..column.len()).map(|at| i16::from(column.is_valid(at))).collect();
                let levels = Levels { definition: field.is_nullable().then(there), repetition: None };
                leaves.push(Self { values: Values::of(column)?, levels });
                Ok(())
            }
        }
    }

    /// Bytes of the values, unencoded; of a text, those of its number in a dictionary.
    pub(super) fn size(&self) -> usize {
        match &self.values {
            Values::Truths(values) => values.len() / 8,
            Values::Small(values) => 4 * values.len(),
            Values::Whole(values) => 8 * values.len(),
            Values::Real(values) => 8 * values.len(),
            Values::Texts(values) => 4 * values.len(),
        }
    }

    /// Encodes the values.
    ///
    /// # Errors
    /// If the column is of another type.
    pub(super) fn write(&self, column: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let Levels { definition, repetition } = &self.levels;
        let (defined, repeated) = (definition.as_deref(), repetition.as_deref());
        match (&self.values, column) {
            (Values::Truths(values), ColumnWriter::BoolColumnWriter(column)) => {
                column.write_batch(values, defined, repeated)
            }
            (Values::Small(values), ColumnWriter::Int32ColumnWriter(column)) => {
                column.write_batch(values, defined, repeated)
            }
            (Values::Whole(values), ColumnWriter::Int64ColumnWriter(column)) => {
                column.write_batch(values, defined, repeated)
            }
            (Values::Real(values), ColumnWriter::DoubleColumnWriter(column)) => {
                column.write_batch(values, defined, repeated)
            }
            (Values::Texts(values), ColumnWriter::ByteArrayColumnWriter(column)) => {
                column.write_batch(values, defined, repeated)
            }
            _ => Err(other_columns()),
        }?;
        Ok(())
    }
}

pub(super) fn other_columns() -> ParquetError {
    ParquetError::General("the batch has other columns than the file".into())
}

impl Values {
    /// The values that are there.
    fn of(column: &dyn Array) -> Result<Self, ParquetError> {
        Ok(match column.data_type() {
            DataType::Boolean => Self::Truths(column.as_boolean().iter().flatten().collect()),
            DataType::UInt8 => Self::Small(numbers::<UInt8Type, _>(column, i32::from)),
            DataType::UInt16 => Self::Small(numbers::<UInt16Type, _>(column, i32::from)),
            // The same bits: the type of the column says that they have no sign.
            DataType::UInt32 => Self::Small(numbers::<UInt32Type, _>(column, u32::cast_signed)),
            DataType::Int64 => Self::Whole(numbers::<Int64Type, _>(column, |value| value)),
            DataType::Float64 => Self::Real(numbers::<Float64Type, _>(column, |value| value)),
            DataType::Utf8 => Self::Texts(texts(column.as_string())),
            DataType::Dictionary(..) => {
                let words = texts(column.as_dictionary::<Int32Type>().values().as_string());
                let keys =
                    numbers::<Int32Type, _>(column.as_dictionary::<Int32Type>().keys(), i32::cast_unsigned);
                Self::Texts(keys.into_iter().map(|key| words[key as usize].clone()).collect())
            }
            other => return Err(super::unknown(other)),
        })
    }
}

/// The numbers of a column that are there, as Parquet stores them.
fn numbers<T: ArrowPrimitiveType, N>(column: &dyn Array, stored: impl Fn(T::Native) -> N) -> Vec<N> {
    let column = column.as_primitive::<T>();
    match column.null_count() {
        0 => column.values().iter().map(|&value| stored(value)).collect(),
        _ => column.iter().flatten().map(stored).collect(),
    }
}

fn texts(column: &StringArray) -> Vec<ByteArray> {
    column.iter().flatten().map(|text| ByteArray::from(text.as_bytes())).collect()
}
