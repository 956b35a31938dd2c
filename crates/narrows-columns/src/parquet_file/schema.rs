//! The Parquet form of an Arrow schema.
//!
//! By the logical types of the Parquet format (`LogicalTypes.md`), with the names that Arrow's own writers give to the groups.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// The columns of a schema.
///
/// # Errors
/// If a column has a type that no table of narrows has.
pub(super) fn convert(schema: &Schema) -> Result<TypePtr, ParquetError> {
    Ok(Arc::new(Type::group_type_builder("arrow_schema").with_fields(columns(schema.fields())?).build()?))
}

fn columns(fields: &[Arc<Field>]) -> Result<Vec<TypePtr>, ParquetError> {
    fields.iter().map(|field| column(field).map(Arc::new)).collect()
}

fn column(field: &Field) -> Result<Type, ParquetError> {
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let values = |physical, logical| {
        let values = Type::primitive_type_builder(field.name(), physical).with_repetition(repetition);
        values.with_logical_type(logical).build()
    };
    let unsigned = |bit_width| values(Physical::INT32, Some(LogicalType::integer(bit_width, false)));
    let group = |logical, fields| {
        let group = Type::group_type_builder(field.name()).with_repetition(repetition);
        group.with_logical_type(logical).with_fields(fields).build()
    };
    match field.data_type() {
        DataType::Boolean => values(Physical::BOOLEAN, None),
        DataType::UInt8 => unsigned(8),
        DataType::UInt16 => unsigned(16),
        DataType::UInt32 => unsigned(32),
        DataType::Int64 => values(Physical::INT64, None),
        DataType::Float64 => values(Physical::DOUBLE, None),
        DataType::Utf8 => values(Physical::BYTE_ARRAY, Some(LogicalType::String)),
        DataType::Dictionary(_, words) if **words == DataType::Utf8 => {
            values(Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        DataType::Struct(fields) => group(None, columns(fields)?),
        DataType::List(item) => {
            let items = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
            let items = items.with_fields(vec![Arc::new(column(item)?)]).build()?;
            group(Some(LogicalType::List), vec![Arc::new(items)])
        }
        other => Err(super::unknown(other)),
    }
}
