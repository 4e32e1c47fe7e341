//! Reader of the records that our runners write to descriptor 3.
//!
//! One JSON object a line: `{"n": nonce, "s": 0, "k": kind, …}`, numbered from 0, the first of kind
//! `start`, the last of kind `end` with the count of the records between. The process that writes
//! them also runs the code under test, so records are evidence, not proof: everything that is odd
//! about them is a fault.

use crate::grade::report::Fault;
use serde::Deserialize;

/// Longest line in bytes.
const MAX_LINE: usize = 16 << 10;
/// Most records of one run.
const MAX_RECORDS: usize = 400_000;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Frame {
    #[serde(rename = "n")]
    nonce: String,
    #[serde(rename = "s")]
    number: u64,
    #[serde(rename = "k")]
    kind: Kind,
    /// Test id or file path.
    #[serde(default, rename = "id")]
    pub(crate) id: String,
    /// Outcome word.
    #[serde(default, rename = "o")]
    pub(crate) outcome: String,
    /// Class word of a failure.
    #[serde(default, rename = "c")]
    pub(crate) class: String,
    /// Module that was not found.
    #[serde(default, rename = "m")]
    pub(crate) module: String,
    /// Count or status of an `end`.
    #[serde(default, rename = "v")]
    value: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Start,
    /// One test and how it ended.
    Test,
    /// One file whose tests could not be reached, and why.
    File,
    /// A test of a sealed file that nobody listed.
    Extra,
    /// Two of the runner's own sources contradict each other.
    Odd,
    /// How many records came before.
    Count,
    /// The runner's exit status.
    End,
}

/// What a channel held.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Records of tests.
    pub(crate) tests: Vec<Frame>,
    /// Records of files.
    pub(crate) files: Vec<Frame>,
    /// Ids that nobody listed.
    pub(crate) extra: Vec<String>,
    /// The runner's own exit status, where the end was reached.
    pub(crate) status: Option<i32>,
    /// What is odd.
    pub(crate) faults: Vec<Fault>,
}

/// Reads a channel to its end.
pub(crate) fn read(channel: &[u8], nonce: &str) -> Frames {
    let mut out = Frames::default();
    let mut last = None;
    let mut count = None;
    let lines: Vec<&[u8]> = channel.split_inclusive(|byte| *byte == b'\n').collect();
    for (number, line) in lines.iter().enumerate() {
        if line.len() > MAX_LINE || number >= MAX_RECORDS {
            out.faults.push(Fault::Unreadable);
            break;
        }
        // The last line may be cut where the process died in the middle of it.
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        let Ok(frame) = serde_json::from_slice::<Frame>(line) else {
            out.faults.push(Fault::Unreadable);
            break;
        };
        let first = number == 0;
        if frame.nonce != nonce
            || frame.number != number as u64
            || first != (frame.kind == Kind::Start)
            || last == Some(Kind::End)
        {
            out.faults.push(Fault::NotOurs);
            break;
        }
        last = Some(frame.kind);
        match frame.kind {
            Kind::Start => {}
            Kind::Test => out.tests.push(frame),
            Kind::File => out.files.push(frame),
            Kind::Extra => out.extra.push(frame.id),
            Kind::Odd => out.faults.push(Fault::Sources),
            Kind::Count => count = Some((frame.value, frame.number)),
            Kind::End => out.status = i32::try_from(frame.value).ok(),
        }
    }
    let counted = count.is_some_and(|(said, number)| u64::try_from(said) == Ok(number));
    if out.status.is_none() || !counted {
        out.status = None;
        out.faults.push(if channel.is_empty() {
            Fault::NotStarted
        } else {
            Fault::Incomplete
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(lines: &[&str]) -> Vec<u8> {
        let mut text = lines.join("\n").replace('\'', "\"");
        if !lines.is_empty() {
            text.push('\n');
        }
        text.into_bytes()
    }

    const START: &str = "{'n':'x','s':0,'k':'start'}";
    const TEST: &str = "{'n':'x','s':1,'k':'test','id':'a','o':'passed'}";
    const COUNT: &str = "{'n':'x','s':2,'k':'count','v':2}";
    const END: &str = "{'n':'x','s':3,'k':'end','v':0}";

    #[test]
    fn a_whole_channel_is_complete() {
        let frames = read(&lines(&[START, TEST, COUNT, END]), "x");
        assert_eq!(frames.status, Some(0));
        assert_eq!(frames.tests.len(), 1);
        assert!(frames.faults.is_empty());
    }

    #[test]
    fn every_missing_added_or_changed_record_is_a_fault() {
        let forged_end = "{'n':'x','s':2,'k':'end','v':0}";
        let wrong_nonce = "{'n':'y','s':1,'k':'test','id':'a','o':'passed'}";
        for bad in [
            vec![],
            vec![START],
            vec![START, TEST],
            vec![TEST, COUNT, END],
            vec![START, COUNT, END],
            vec![START, TEST, END],
            vec![START, TEST, forged_end],
            vec![START, wrong_nonce, COUNT, END],
            vec![START, TEST, TEST, COUNT, END],
            vec![START, TEST, COUNT, END, TEST],
            vec![START, "nonsense", COUNT, END],
        ] {
            assert!(!read(&lines(&bad), "x").faults.is_empty(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = read(&bytes, "x");
        }
    }
}
