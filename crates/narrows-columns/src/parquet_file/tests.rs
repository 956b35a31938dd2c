use std::fs;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, encode_arrow_schema};

use super::*;
use crate::column::{Columns, Take, Words};
use crate::packets::PacketColumns;
use crate::passed::PassedLinks;
use crate::series::SeriesColumns;

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("narrows-parquet-{}-{name}.parquet", std::process::id()))
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches.remove(0)
}

/// A table with each kind of column, of which some lack values.
fn table() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("truth", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("whole", Arc::new(Int64Array::from(vec![None, Some(i64::MIN), Some(0), Some(i64::MAX)]))),
        ("number", Arc::new(Float64Array::from(vec![Some(0.5), Some(-1e300), None, None]))),
        ("text", Arc::new(StringArray::from(vec![Some(""), None, Some("dé"), Some("\0")]))),
        ("nothing", Arc::new(Int64Array::from(vec![None, None, None, None]))),
        ("unsigned", Arc::new(UInt32Array::from(vec![0, 1, u32::MAX - 1, u32::MAX]))),
    ];
    let field = |(name, column): &(&str, ArrayRef)| {
        Field::new(*name, column.data_type().clone(), *name != "unsigned")
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

/// Packets that passed two links, none, one and none, and words from a dictionary.
fn packets() -> RecordBatch {
    let links = PassedLinks::field("links");
    let DataType::List(item) = links.data_type() else { unreachable!("it is a list") };
    let DataType::Struct(fields) = item.data_type() else { unreachable!("of records") };
    let times = |values: [i64; 3]| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values)) };
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(["a.up", "b \"é\"", "a.up"]));
    let columns = vec![names, times([0, 1, 2]), times([7, 0, 7]), times([9, i64::MAX, 3])];
    let records = StructArray::new(fields.clone(), columns, None);
    let lists =
        ListArray::new(Arc::clone(item), OffsetBuffer::from_lengths([2, 0, 1, 0]), Arc::new(records), None);
    let mut words = Words::<Arc<str>>::default();
    ["up", "", "up", "down"].iter().for_each(|word| words.push_text(word));
    let schema = Schema::new(vec![crate::column::words("where"), links]);
    RecordBatch::try_new(Arc::new(schema), vec![words.take(), Arc::new(lists)]).unwrap()
}

#[test]
fn what_is_written_is_read() {
    for (name, batch) in [("table", table()), ("packets", packets())] {
        let path = path(name);
        write_parquet(&path, &batch.schema(), std::slice::from_ref(&batch)).unwrap();
        assert_eq!(read(&path), batch, "{name}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_is_as_the_librarys_own_writer_makes_it() {
    for (name, batch) in [("ours", table()), ("ours-packets", packets())] {
        let (ours, theirs) = (path(name), path("theirs"));
        write_parquet(&ours, &batch.schema(), std::slice::from_ref(&batch)).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&theirs).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let metadata = |path| {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            let file = reader.metadata();
            let chunks = file.row_group(0).columns().iter();
            let chunks = chunks.map(|chunk| (chunk.num_values(), chunk.statistics().cloned()));
            (file.file_metadata().schema_descr().root_schema().clone(), chunks.collect::<Vec<_>>())
        };
        assert_eq!(metadata(&ours), metadata(&theirs));
        [ours, theirs].iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

#[test]
fn schemas_are_those_of_the_library() {
    assert_eq!(ARROW_SCHEMA, ARROW_SCHEMA_META_KEY);
    for arrow in [PacketColumns::schema(), SeriesColumns::schema(), table().schema()] {
        let theirs = ArrowSchemaConverter::new().convert(&arrow).unwrap();
        assert_eq!(*schema::convert(&arrow).unwrap(), *theirs.root_schema());
        assert_eq!(encoded(&arrow), encode_arrow_schema(&arrow));
    }
}

#[test]
fn a_type_that_no_table_has_is_refused() {
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Date32, false)]));
    let error = ParquetFile::create(&path("date"), &schema).unwrap_err();
    assert!(error.to_string().contains("Date32"), "{error}");
    fs::remove_file(path("date")).unwrap();
}

#[test]
fn the_size_in_progress_is_near_what_it_becomes() {
    let path = path("size");
    let rows = 200_000;
    let schema = Arc::new(Schema::new(vec![Field::new("at", DataType::Int64, false)]));
    let batch = |from: i64| {
        let column = Int64Array::from_iter_values((from..from + rows).map(|at| at * 1_000_003));
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap()
    };
    let mut file = ParquetFile::create(&path, &schema).unwrap();
    file.write(&batch(0)).unwrap();
    file.seal().unwrap();
    file.write(&batch(rows)).unwrap();
    let estimated = file.size();
    file.seal().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!(file.size(), size);
    assert!(estimated.abs_diff(size) < size / 20, "{estimated} for {size}");
    fs::remove_file(&path).unwrap();
}
