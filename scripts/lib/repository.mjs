// Where the repository lies: the one place that knows. The workflows say it by their environment; package.json in the
// repository says nothing of it.

/** Addresses of the repository; undefined where the environment does not name it. */
export function repositoryOf({ GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: name }) {
  if (!server || !name) return undefined;
  const url = `${server.replace(/\/+$/, '')}/${name}`;
  return { name, url, git: `git+${url}.git` };
}

/** The members of package.json that npm needs for a package with provenance. */
export function addressesIn({ url, git }) {
  return {
    homepage: `${url}#readme`,
    bugs: { url: `${url}/issues` },
    repository: { type: 'git', url: git },
  };
}

/** Markdown whose links to files lead to these files in the repository, as they are at the tag. */
export function withAddresses(markdown, { url }, tag) {
  return markdown.replace(/\]\((?![a-z]+:|#)([^)\s]+)\)/g, `](${url}/blob/${tag}/$1)`);
}
