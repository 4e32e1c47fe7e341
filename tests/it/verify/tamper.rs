//! The plumbing to change what lies on a ref.

use super::forge::Forged;
use crate::common::git::{file_at, git_input};

impl Forged {
    /// A blob with these bytes.
    pub(crate) fn blob(&self, bytes: &[u8]) -> String {
        git_input(&self.dir(), &["hash-object", "-w", "--stdin"], bytes)
    }

    /// Replaces the commit at the tip of a ref by one whose tree has other files: (name, content),
    /// `None` takes the name out. Its parents stay.
    pub(crate) fn rewrite_tip(&self, reference: &str, files: &[(&str, Option<&[u8]>)]) {
        let listing = self.git(&["ls-tree", reference]);
        let kept = listing.lines().filter(|line| {
            let name = line.split('\t').nth(1).unwrap();
            files.iter().all(|(changed, _)| *changed != name)
        });
        let mut lines: Vec<String> = kept.map(str::to_owned).collect();
        for (name, content) in files {
            if let Some(content) = content {
                lines.push(format!("100644 blob {}\t{name}", self.blob(content)));
            }
        }
        let tree = self.tree(&lines);
        let parents = self.git(&["log", "-1", "--format=%P", reference]);
        self.commit_tree(&tree, &parents, reference);
    }

    /// Puts a commit with these files on top of a ref, or begins it.
    pub(crate) fn append(&self, reference: &str, files: &[(&str, &[u8])]) {
        let lines: Vec<String> = files
            .iter()
            .map(|(name, content)| format!("100644 blob {}\t{name}", self.blob(content)))
            .collect();
        let tree = self.tree(&lines);
        let tip = self.git(&["for-each-ref", "--format=%(objectname)", reference]);
        self.commit_tree(&tree, &tip, reference);
    }

    pub(crate) fn tree(&self, lines: &[String]) -> String {
        git_input(&self.dir(), &["mktree"], lines.join("\n").as_bytes())
    }

    fn commit_tree(&self, tree: &str, parents: &str, reference: &str) {
        let mut args = vec!["commit-tree", tree, "-m", "x"];
        for parent in parents.split_whitespace() {
            args.extend(["-p", parent]);
        }
        let commit = self.git(&args);
        self.git(&["update-ref", reference, &commit]);
    }

    /// The bytes of a file at the tip of a ref.
    pub(crate) fn read(&self, reference: &str, name: &str) -> Vec<u8> {
        file_at(&self.dir(), &format!("{reference}:{name}"))
    }

    /// The one ref under a prefix.
    pub(crate) fn only_ref(&self, prefix: &str) -> String {
        let refs = self.git(&["for-each-ref", "--format=%(refname)", prefix]);
        assert_eq!(refs.lines().count(), 1, "{refs}");
        refs
    }
}
