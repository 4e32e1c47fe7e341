//! Sealing and opening hidden files: archive, compression and encryption, and back. Anchor: the
//! `age` program on a tar of the same files, which is made beforehand and not compressed.

#[path = "common/anchor.rs"]
mod anchor;

use criterion::{BatchSize, Criterion, Throughput};
use hangar::base::process;
use hangar::base::redact::Secret;
use hangar::seal::{self, FileMode, Identity, Payload, Recipient, SealedFile};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Text of `size` bytes like that of a test file: words repeat, lines do not.
fn text(seed: usize, size: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut out = String::with_capacity(size + 80);
    while out.len() < size {
        // Knuth's MMIX generator: the same bytes on every machine.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (left, right) = (state >> 40, (state >> 20) & 0xffff);
        let _ = writeln!(
            out,
            "    assert convert({left}, {right:#x}) == {}",
            left ^ right
        );
    }
    out.truncate(size);
    out.into_bytes()
}

struct Case {
    name: &'static str,
    files: usize,
    size: usize,
}

const CASES: [Case; 2] = [
    Case {
        name: "200x4KiB",
        files: 200,
        size: 4 << 10,
    },
    Case {
        name: "1x1MiB",
        files: 1,
        size: 1 << 20,
    },
];

impl Case {
    fn files(&self) -> Vec<SealedFile> {
        (0..self.files)
            .map(|index| SealedFile {
                path: format!("tests/test_{index:03}.py"),
                mode: FileMode::Regular,
                bytes: Secret::new(text(index, self.size)),
            })
            .collect()
    }
}

fn seal(files: Vec<SealedFile>, to: &[Recipient]) -> Vec<u8> {
    let small = |text: &str| Secret::new(text.as_bytes().to_vec());
    let payload = Payload::new(files, small("{}"), small("")).expect("it is accepted");
    let bytes = payload.to_bytes().expect("it is packed");
    seal::encrypt(bytes.expose(), to).expect("it is encrypted")
}

fn open(ciphertext: &[u8], key: &Identity) -> Payload {
    let bytes = seal::decrypt(ciphertext, key).expect("it is for this key");
    Payload::from_bytes(bytes.expose()).expect("it is whole")
}

/// The same files as a tar, and an age identity, in files.
struct Anchor {
    dir: tempfile::TempDir,
    recipient: String,
}

impl Anchor {
    fn new(case: &Case, identity: &Secret, recipient: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let tree = dir.path().join("tree");
        for file in case.files() {
            let path = tree.join(file.path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            put(&path, file.bytes.expose());
        }
        put(&dir.path().join("key"), identity.expose());
        let anchor = Self {
            dir,
            recipient: recipient.to_owned(),
        };
        anchor.run("tar", &["-cf", "plain", "-C", "tree", "."]);
        anchor.seal();
        anchor
    }

    fn run(&self, program: &str, args: &[&str]) {
        anchor::run(anchor::command(program, args).current_dir(self.dir.path()));
    }

    fn seal(&self) {
        self.run("age", &["-r", &self.recipient, "-o", "sealed", "plain"]);
    }

    fn open(&self) {
        self.run("age", &["-d", "-i", "key", "-o", "opened", "sealed"]);
    }
}

fn put(path: &Path, bytes: &[u8]) {
    hangar::base::files::write_atomic(path, bytes, 0o600).expect("a file");
}

fn case(criterion: &mut Criterion, case: &Case) {
    let (secret, recipient) = seal::generate_identity();
    let key = Identity::native(&secret).expect("it is one");
    let to: Vec<Recipient> = vec![recipient.parse().expect("it is one")];
    let sealed = seal(case.files(), &to);
    let anchor = process::find(Path::new("age")).map(|_| Anchor::new(case, &secret, &recipient));
    let bytes = Throughput::Bytes((case.files * case.size) as u64);

    let mut group = criterion.benchmark_group(format!("seal/{}", case.name));
    group.throughput(bytes.clone());
    group.bench_function("hangar", |bencher| {
        let seal = |files| seal(files, &to);
        bencher.iter_batched(|| case.files(), seal, BatchSize::PerIteration);
    });
    if let Some(anchor) = &anchor {
        group.bench_function("anchor-age", |bencher| bencher.iter(|| anchor.seal()));
    }
    group.finish();

    let mut group = criterion.benchmark_group(format!("open/{}", case.name));
    group.throughput(bytes);
    group.bench_function("hangar", |bencher| bencher.iter(|| open(&sealed, &key)));
    if let Some(anchor) = &anchor {
        group.bench_function("anchor-age", |bencher| bencher.iter(|| anchor.open()));
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for one in &CASES {
        case(&mut criterion, one);
    }
    // What starting `age` costs by itself.
    if process::find(Path::new("age")).is_some() {
        criterion.bench_function("floor-age-version", |bencher| {
            bencher.iter(|| anchor::run(&mut anchor::command("age", &["--version"])));
        });
    }
    criterion.final_summary();
}
