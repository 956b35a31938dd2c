//! A column of the row group in progress, encoded, in memory.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// A column chunk, as the format calls it.
pub(super) struct Chunk {
    pub(super) column: ColumnWriter<'static>,
    pages: Pages,
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr, properties: WriterPropertiesPtr) -> Self {
        let pages = Pages(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))));
        Self { column: get_column_writer(column, properties, Box::new(pages.clone())), pages }
    }

    /// Its bytes, and where in them its parts are.
    pub(super) fn close(self) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let closed = self.column.close()?;
        let mut pages = self.pages.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = std::mem::replace(&mut *pages, TrackedWrite::new(Vec::new()));
        Ok((pages.into_inner()?.into(), closed))
    }
}

/// The pages that are complete. The writer of the column owns one of two handles.
#[derive(Clone)]
struct Pages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SerializedPageWriter::new(&mut *pages).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        Ok(())
    }
}
