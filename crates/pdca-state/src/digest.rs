//! Digests of a bundle's files, to detect changes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};

use crate::artifact::Artifact;
use crate::bundle::Bundle;
use crate::contents::LoadError;
use crate::files::{self, FileReadError};

/// A digest of every file of a bundle, keyed by relative path.
///
/// A link is not followed; its target path is digested. Of pipes, sockets and devices only the kind
/// counts.
///
/// The JSON form is one object from path to hexadecimal digest. In a path, `%` and every byte that is
/// not UTF-8 are written as `%` and two hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleDigest {
    files: BTreeMap<OsString, [u8; 32]>,
}

impl Serialize for BundleDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.files.iter().map(|(path, sum)| (escaped(path.as_bytes()), hex(sum))))
    }
}

impl<'de> Deserialize<'de> for BundleDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = BTreeMap::<String, String>::deserialize(deserializer)?;
        let no = |kind: &str, what: &str| {
            D::Error::custom(format_args!("{what:?} is no {kind} of a digest"))
        };
        let files = stored.iter().map(|(path, sum)| {
            let bytes = unescaped(path).ok_or_else(|| no("path", path))?;
            Ok((OsString::from_vec(bytes), unhex(sum).ok_or_else(|| no("sum", sum))?))
        });
        Ok(Self { files: files.collect::<Result<_, D::Error>>()? })
    }
}

impl BundleDigest {
    /// Lists the files that were changed, added or removed since `earlier`, sorted.
    pub fn changed_since(&self, earlier: &BundleDigest) -> Vec<Utf8PathBuf> {
        let mut changed: Vec<&OsString> = self
            .files
            .iter()
            .filter(|(path, sum)| earlier.files.get(*path) != Some(*sum))
            .map(|(path, _)| path)
            .collect();
        changed.extend(earlier.files.keys().filter(|path| !self.files.contains_key(*path)));
        changed.sort_unstable();
        changed.into_iter().map(|path| path.to_string_lossy().into_owned().into()).collect()
    }

    /// A single digest over all files, in hexadecimal.
    pub fn to_hex(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, sum) in &self.files {
            // With its length: otherwise the end of a name and the start of a digest could be read
            // in two ways.
            framed(&mut hasher, path.as_bytes());
            hasher.update(sum);
        }
        hex(&hasher.finalize())
    }
}

impl Bundle {
    /// Digests every file of the bundle, archived attempts included, without the logs of the present attempt: the driver
    /// adds to those whenever a call has ended, also between two tries of one call.
    pub fn digest(&self) -> Result<BundleDigest, LoadError> {
        self.place().require_inside()?;
        let mut files = BTreeMap::new();
        let mut todo = vec![OsString::new()];
        while let Some(below) = todo.pop() {
            let dir = self.dir().as_std_path().join(&below);
            let failed = |source: io::Error| {
                if below.is_empty() && source.kind() == io::ErrorKind::NotFound {
                    return LoadError::Missing { dir: self.dir().into() };
                }
                LoadError::List { dir: dir.to_string_lossy().into_owned().into(), source }
            };
            for entry in dir.read_dir().map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let mut path = below.clone();
                if !path.is_empty() {
                    path.push("/");
                }
                path.push(entry.file_name());
                // Only at the top: the logs of archived attempts never change again.
                if path == Artifact::Logs.file_name() {
                    continue;
                }
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() {
                    todo.push(path);
                } else {
                    let sum = sum_of(&entry, kind).map_err(|source| {
                        let path = entry.path().to_string_lossy().into_owned().into();
                        LoadError::File(FileReadError::Io { path, source })
                    })?;
                    files.insert(path, sum);
                }
            }
        }
        Ok(BundleDigest { files })
    }
}

fn sum_of(entry: &std::fs::DirEntry, kind: std::fs::FileType) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    if kind.is_file() {
        let fd = rustix::fs::open(entry.path(), files::READ_ONLY, rustix::fs::Mode::empty())?;
        hasher.update(b"file");
        hasher.update(rustix::fs::fstat(&fd)?.st_size.to_le_bytes());
        feed(fd, &mut hasher)?;
    } else if kind.is_symlink() {
        hasher.update(b"link");
        framed(&mut hasher, entry.path().read_link()?.as_os_str().as_bytes());
    } else {
        // Reading a pipe, a socket or a device could block, so only the kind and mode count.
        hasher.update(b"special");
        hasher.update(entry.metadata()?.mode().to_le_bytes());
    }
    Ok(hasher.finalize().into())
}

/// The sha256 of a file below `root` in hexadecimal, without a size limit; `None` if it is absent.
pub(crate) fn sha256_within(
    root: &Utf8Path,
    relative: &str,
) -> Result<Option<String>, FileReadError> {
    let Some((fd, _)) = files::open_within(root, Utf8Path::new(relative))? else {
        return Ok(None);
    };
    let mut hasher = Sha256::new();
    feed(fd, &mut hasher)
        .map_err(|source| FileReadError::Io { path: root.join(relative), source })?;
    Ok(Some(hex(&hasher.finalize())))
}

/// Returns the sha256 of `bytes` in hexadecimal, the form used in gate reports and seals.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn feed(fd: OwnedFd, hasher: &mut Sha256) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut file = std::fs::File::from(fd);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => hasher.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn framed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
        }
        text
    })
}

/// The inverse of [`hex`]; refuses any other spelling.
fn unhex(text: &str) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let sum: Vec<u8> = pairs.iter().map(|pair| byte_of(*pair)).collect::<Option<_>>()?;
    let sum = <[u8; 32]>::try_from(sum).ok()?;
    (hex(&sum) == text).then_some(sum)
}

fn byte_of(digits: [u8; 2]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
}

/// Escapes a path so that every byte of it can be recovered.
fn escaped(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push('%');
            text.push_str(&hex(&[*byte]));
        }
    }
    text
}

/// The inverse of [`escaped`]; refuses any other spelling.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    path.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let (digits, rest) = part.as_bytes().split_first_chunk::<2>()?;
        path.push(byte_of(*digits)?);
        path.extend_from_slice(rest);
    }
    (escaped(&path) == text).then_some(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_digest_names_each_file_that_changed_came_or_went() {
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[("a.md", "1"), ("iteration-v1/b.md", "2"), ("c.md", "3")]);
        let before = bundle.digest().unwrap();
        assert_eq!(before, bundle.digest().unwrap());
        scene.write("issue_7/a.md", "one");
        scene.write("issue_7/tests/new.rs", "");
        fs_err::remove_file(bundle.dir().join("iteration-v1/b.md")).unwrap();
        let after = bundle.digest().unwrap();
        assert_eq!(after.changed_since(&before), ["a.md", "iteration-v1/b.md", "tests/new.rs"]);
        assert_eq!(before.changed_since(&before), Vec::<Utf8PathBuf>::new());
        assert_ne!(after.to_hex(), before.to_hex());
    }

    #[test]
    fn a_link_counts_by_where_it_points_and_a_pipe_is_not_waited_for() {
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[]);
        let dir = bundle.dir();
        std::os::unix::fs::symlink("/nowhere", dir.join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.join("pipe").as_std_path(),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        fs_err::write(dir.as_std_path().join(OsString::from_vec(vec![b'x', 0xff])), "1").unwrap();
        let before = bundle.digest().unwrap();
        fs_err::remove_file(dir.join("link")).unwrap();
        std::os::unix::fs::symlink("/elsewhere", dir.join("link")).unwrap();
        assert_eq!(bundle.digest().unwrap().changed_since(&before), ["link"]);
    }

    #[test]
    fn a_digest_that_was_kept_is_the_same_again() {
        let scene = Scene::new();
        let bundle = scene.bundle("7", &[("a%b.md", "1"), ("iteration-v1/ü.md", "2")]);
        let odd = OsString::from_vec(b"x\xff%41".to_vec());
        fs_err::write(bundle.dir().as_std_path().join(odd), "3").unwrap();
        let digest = bundle.digest().unwrap();
        let json = serde_json::to_string(&digest).unwrap();
        for path in [r#""a%25b.md":"#, r#""iteration-v1/ü.md":"#, r#""x%ff%2541":"#] {
            assert!(json.contains(path), "{json}");
        }
        assert_eq!(serde_json::from_str::<BundleDigest>(&json).unwrap(), digest);
    }

    #[test]
    fn what_is_no_digest_is_an_error() {
        let (sum, short) = ("ab".repeat(32), "ab".repeat(31));
        let read = |path: &str, sum: &str| {
            serde_json::from_str::<BundleDigest>(&format!(r#"{{"{path}": "{sum}"}}"#))
        };
        assert!(read("a%25", &sum).is_ok());
        for path in ["%", "%2", "%zz", "%+f", "%41", "%FF", "%é"] {
            assert!(read(path, &sum).is_err(), "{path}");
        }
        for sum in ["", "a", &short, &sum.to_uppercase(), &format!("{sum}ab"), &"+f".repeat(32)] {
            assert!(read("a", sum).is_err(), "{sum}");
        }
    }

    proptest! {
        #[test]
        fn every_path_is_kept_byte_for_byte(path in any::<Vec<u8>>()) {
            prop_assert_eq!(unescaped(&escaped(&path)), Some(path));
        }

        #[test]
        fn whatever_is_read_as_a_digest_is_written_the_same(
            bytes in prop_oneof![any::<Vec<u8>>(), r#"\{"[a%25fF+]{0,4}":"([aF+]{2}){31,33}"\}"#.prop_map(String::into_bytes)]
        ) {
            if let Ok(digest) = serde_json::from_slice::<BundleDigest>(&bytes) {
                let compact: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(serde_json::to_value(&digest).unwrap(), compact);
            }
        }
    }

    #[test]
    fn the_sum_of_bytes_is_the_known_one() {
        assert_eq!(
            sha256_hex(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
