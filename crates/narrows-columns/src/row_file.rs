//! A file of rows: Parquet if its name ends in `.parquet`, else CSV.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use narrows_core::Time;

#[cfg(feature = "parquet")]
use crate::{column::Columns, parquet_file::ParquetFile};

use crate::table::Table;

/// Rows that wait for a row group: what a Parquet file holds back in memory beside the row group itself.
#[cfg(feature = "parquet")]
const BATCH: usize = 1 << 13;

/// A file of rows of the table `T`.
pub struct RowFile<T: Table> {
    form: Form<T>,
    /// Rows put, and those among them that the file is known to contain.
    rows: u64,
    kept: u64,
}

enum Form<T: Table> {
    Csv {
        output: BufWriter<Box<dyn Write + Send>>,
        line: String,
        bytes: u64,
        table: std::marker::PhantomData<fn(T)>,
    },
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetForm<T::Columns>>),
}

#[cfg(feature = "parquet")]
struct ParquetForm<C> {
    file: ParquetFile,
    /// The next batch.
    columns: C,
    /// Up to when rows were last brought to the file.
    settled: Time,
}

#[cfg(feature = "parquet")]
impl<C: Columns> ParquetForm<C> {
    fn write_batch(&mut self) -> io::Result<()> {
        self.file.write(&std::mem::take(&mut self.columns).take())
    }

    /// Brings all rows to the file.
    fn seal(&mut self) -> io::Result<()> {
        if self.columns.rows() > 0 {
            self.write_batch()?;
        }
        self.file.seal()
    }
}

impl<T: Table> RowFile<T> {
    /// Creates the file or empties it. A name that ends in `.parquet` makes it Parquet, every other CSV.
    ///
    /// # Errors
    /// If it cannot be created, or if Parquet is wanted and the crate was built without it.
    pub fn create(path: &Path) -> io::Result<Self> {
        if !path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet")) {
            return Self::csv(File::create(path)?);
        }
        #[cfg(feature = "parquet")]
        {
            let file = ParquetFile::create(path, &T::Columns::schema())?;
            let form = ParquetForm { file, columns: T::Columns::default(), settled: Time::ZERO };
            Ok(Self::of(Form::Parquet(Box::new(form))))
        }
        #[cfg(not(feature = "parquet"))]
        {
            let why =
                "this narrows was built without Parquet (feature `parquet`): name a file that ends in .csv";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }

    /// CSV to any writer.
    ///
    /// # Errors
    /// If the first line cannot be written.
    pub fn csv(output: impl Write + Send + 'static) -> io::Result<Self> {
        let mut output = BufWriter::with_capacity(1 << 16, Box::new(output) as Box<dyn Write + Send>);
        output.write_all(T::HEAD.as_bytes())?;
        let (line, bytes) = (String::with_capacity(256), T::HEAD.len() as u64);
        Ok(Self::of(Form::Csv { output, line, bytes, table: std::marker::PhantomData }))
    }

    fn of(form: Form<T>) -> Self {
        Self { form, rows: 0, kept: 0 }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If the file cannot be written. A Parquet file then ends after the last row group that was complete.
    pub fn put(&mut self, row: &T::Row<'_>) -> io::Result<()> {
        self.rows += 1;
        match &mut self.form {
            Form::Csv { output, line, bytes, .. } => {
                use fmt::Write as _;
                line.clear();
                writeln!(line, "{row}").map_err(io::Error::other)?;
                *bytes += line.len() as u64;
                output.write_all(line.as_bytes())
            }
            #[cfg(feature = "parquet")]
            Form::Parquet(form) => {
                T::append(&mut form.columns, row);
                if form.columns.rows() >= BATCH {
                    form.write_batch()?;
                    self.kept = form.file.rows();
                }
                Ok(())
            }
        }
    }

    /// All rows up to `at` have been put: brings them to the file where that is due. With CSV it always is. With
    /// Parquet it costs a row group, and is due after a minute, or a fiftieth of the time so far if that is longer:
    /// a file of a long run has few row groups all the same.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[cfg_attr(
        not(feature = "parquet"),
        expect(unused_variables, reason = "CSV is always brought to the file")
    )]
    pub fn settle(&mut self, at: Time) -> io::Result<()> {
        match &mut self.form {
            Form::Csv { output, .. } => {
                output.flush()?;
                self.kept = self.rows;
            }
            #[cfg(feature = "parquet")]
            Form::Parquet(form) => {
                let due = narrows_core::Duration::from_secs(60).nanos().max(at.nanos() / 50);
                if at.since(form.settled).nanos() >= due {
                    form.settled = at;
                    form.seal()?;
                    self.kept = form.file.rows();
                }
            }
        }
        Ok(())
    }

    /// Completes the file. A CSV file that is dropped without this call loses its end, a Parquet file the rows after
    /// its last row group.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Csv { output, .. } => {
                output.flush()?;
                self.kept = self.rows;
            }
            #[cfg(feature = "parquet")]
            Form::Parquet(form) => {
                form.seal()?;
                self.kept = form.file.rows();
            }
        }
        Ok(())
    }

    /// Rows that the file is known to contain: of CSV those up to the last [`settle`](Self::settle), of Parquet those
    /// in complete row groups.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// The size of the file so far, in bytes, with what still waits in memory; of Parquet an estimate.
    pub fn size(&self) -> u64 {
        match &self.form {
            Form::Csv { bytes, .. } => *bytes,
            #[cfg(feature = "parquet")]
            Form::Parquet(form) => form.file.size(),
        }
    }
}

impl<T: Table> fmt::Debug for RowFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFile").field("rows", &self.rows).field("kept", &self.kept).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
