use std::fs;
use std::io::Write;

use narrows_report::LinkCounts;

use super::*;
use crate::Series;

fn path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("narrows-rows-{}-{name}", std::process::id()))
}

/// Appends a row for each second from one to another.
fn put(file: &mut RowFile<Series>, seconds: std::ops::Range<u64>) -> io::Result<()> {
    let (counts, at) = (LinkCounts::default(), |second| Time::from_nanos(second * 1_000_000_000));
    seconds
        .into_iter()
        .try_for_each(|second| file.put(&counts.row(&counts, (at(second), at(second + 1)), "l,\"up\"")))
}

#[test]
fn csv_has_a_head_and_is_there_up_to_the_last_settle() {
    let path = path("plain.csv");
    let mut file = RowFile::<Series>::create(&path).unwrap();
    put(&mut file, 0..3).unwrap();
    assert_eq!(file.kept(), 0);
    file.settle(Time::from_nanos(3_000_000_000)).unwrap();
    assert_eq!((file.kept(), file.size()), (3, fs::metadata(&path).unwrap().len()));
    file.finish().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        (text.lines().count(), text.lines().next()),
        (4, Some(narrows_report::SERIES_HEAD.trim_end()))
    );
    fs::remove_file(&path).unwrap();
}

#[test]
fn an_error_of_the_writer_is_told_and_its_rows_are_not_counted_as_kept() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut file = RowFile::<Series>::csv(Full).unwrap();
    put(&mut file, 0..1).unwrap();
    assert_eq!(file.settle(Time::ZERO).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.kept(), 0);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_refuses_such_a_name() {
    let error = RowFile::<Series>::create(&path("x.parquet")).unwrap_err();
    assert!(error.to_string().contains("without Parquet"), "{error}");
    assert!(!path("x.parquet").exists());
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    /// The starts of the rows of a file, in seconds, and the number of its row groups.
    fn read(path: &std::path::Path) -> (Vec<u64>, usize) {
        let builder = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
        let metadata = builder.metadata();
        let about = metadata.file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| about.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        assert_eq!(value("narrows.table").as_deref(), Some("series"));
        assert_eq!(value("narrows.columns").as_deref(), Some("1"));
        let groups = metadata.num_row_groups();
        let mut starts = Vec::new();
        for batch in builder.build().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("start_ns").unwrap().as_primitive::<Int64Type>().clone();
            starts.extend(column.values().iter().map(|&start| start.unsigned_abs() / 1_000_000_000));
        }
        (starts, groups)
    }

    fn seconds(seconds: std::ops::Range<u64>) -> Vec<u64> {
        seconds.collect()
    }

    #[test]
    fn a_file_can_be_read_after_each_row_group() {
        let path = path("groups.PARQUET");
        let mut file = RowFile::<Series>::create(&path).unwrap();
        assert_eq!(read(&path), (vec![], 0));
        let at = |second: u64| Time::from_nanos(second * 1_000_000_000);
        put(&mut file, 0..59).unwrap();
        file.settle(at(59)).unwrap();
        assert_eq!((read(&path), file.kept()), ((vec![], 0), 0));
        put(&mut file, 59..60).unwrap();
        file.settle(at(60)).unwrap();
        assert_eq!((read(&path), file.kept()), ((seconds(0..60), 1), 60));
        // After ten hours, every twelve minutes.
        put(&mut file, 60..36_000).unwrap();
        file.settle(at(36_000)).unwrap();
        put(&mut file, 36_000..36_719).unwrap();
        file.settle(at(36_719)).unwrap();
        assert_eq!(read(&path), (seconds(0..36_000), 2));
        file.finish().unwrap();
        assert_eq!((read(&path), file.kept()), ((seconds(0..36_719), 3), 36_719));
        let size = fs::metadata(&path).unwrap().len();
        assert_eq!(file.size(), size);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_disk_leaves_a_file_that_keeps_its_row_groups() {
        let path = path("full.parquet");
        let mut file = RowFile::<Series>::create(&path).unwrap();
        put(&mut file, 0..100).unwrap();
        file.finish().unwrap();
        let Form::Parquet(form) = &mut file.form else { unreachable!("by its name") };
        form.file.fill_disk();
        put(&mut file, 100..200).unwrap();
        assert!(file.finish().is_err());
        assert_eq!((read(&path), file.kept()), ((seconds(0..100), 1), 100));
        assert!(put(&mut file, 200..20_000).is_err());
        fs::remove_file(&path).unwrap();
    }
}
