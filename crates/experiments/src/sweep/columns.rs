//! A table of columns, as CSV and as Parquet.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::error::{Error, Result};

/// Columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Columns(Vec<(String, Cells)>);

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cells {
    Text(Vec<String>),
    Whole(Vec<i64>),
    /// `None` without a measurement.
    Number(Vec<Option<f64>>),
}

impl Columns {
    pub(super) fn add(&mut self, name: impl Into<String>, cells: Cells) {
        self.0.push((name.into(), cells));
    }

    pub(super) fn to_csv(&self) -> std::result::Result<String, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record(self.0.iter().map(|(name, _)| name))?;
        for row in 0..self.rows() {
            out.write_record(self.0.iter().map(|(_, cells)| cells.shown(row)))?;
        }
        let bytes = out.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes to another name first, so that a killed program leaves no incomplete file.
    pub(super) fn write_parquet(&self, path: &Path) -> Result<()> {
        let partial = path.with_extension("parquet.partial");
        let fault = |error: &dyn std::fmt::Display| {
            Error::failed(format!("cannot write {}: {error}", path.display()))
        };
        let file = File::create(&partial).map_err(|error| fault(&error))?;
        self.fill(file).map_err(|error| fault(&error))?;
        fs::rename(&partial, path).map_err(|error| fault(&error))
    }

    fn rows(&self) -> usize {
        self.0.first().map_or(0, |(_, cells)| cells.len())
    }

    fn fill(&self, file: File) -> std::result::Result<(), ParquetError> {
        let fields: Vec<TypePtr> = self
            .0
            .iter()
            .map(|(name, cells)| cells.field(name).map(Arc::new))
            .collect::<std::result::Result<_, _>>()?;
        let schema = Type::group_type_builder("paceline").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
        let mut group = writer.next_row_group()?;
        for (_, cells) in &self.0 {
            let Some(mut column) = group.next_column()? else { break };
            match cells {
                Cells::Text(texts) => {
                    let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
                }
                Cells::Whole(numbers) => {
                    column.typed::<Int64Type>().write_batch(numbers, None, None)?;
                }
                Cells::Number(numbers) => {
                    let present: Vec<f64> = numbers.iter().copied().flatten().collect();
                    let levels: Vec<i16> = numbers.iter().map(|number| i16::from(number.is_some())).collect();
                    column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Text(cells) => cells.len(),
            Cells::Whole(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
        }
    }

    fn shown(&self, row: usize) -> String {
        match self {
            Cells::Text(cells) => cells[row].clone(),
            Cells::Whole(cells) => cells[row].to_string(),
            Cells::Number(cells) => cells[row].map(|number| number.to_string()).unwrap_or_default(),
        }
    }

    fn field(&self, name: &str) -> std::result::Result<Type, ParquetError> {
        let (physical, logical, repetition) = match self {
            Cells::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            Cells::Whole(_) => (PhysicalType::INT64, None, Repetition::REQUIRED),
            Cells::Number(_) => (PhysicalType::DOUBLE, None, Repetition::OPTIONAL),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn sample() -> Columns {
        let mut columns = Columns::default();
        columns.add("variant", Cells::Text(vec!["a,b".into(), "c".into()]));
        columns.add("seed", Cells::Whole(vec![1, 2]));
        columns.add("goodput_mbps", Cells::Number(vec![Some(6.8), None]));
        columns
    }

    #[test]
    fn csv_has_a_header_and_quotes() {
        assert_eq!(sample().to_csv().unwrap(), "variant,seed,goodput_mbps\n\"a,b\",1,6.8\nc,2,\n");
    }

    #[test]
    fn parquet_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        sample().write_parquet(&path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("6.8") && rows[0].contains("a,b"), "{rows:?}");
        assert!(rows[1].contains("null"), "{rows:?}");
    }
}
