# Makes the release on GitHub for the tag $GITHUB_REF_NAME, with the changelog's part and the tarball.
set -eu
notes=$(mktemp)
node scripts/release.mjs --notes --tag="$GITHUB_REF_NAME" > "$notes"
case "$GITHUB_REF_NAME" in
  *-*) kind=--prerelease ;;
  *) kind=--latest ;;
esac
gh release view "$GITHUB_REF_NAME" > /dev/null 2>&1 && exit 0 # by an earlier run of this job
gh release create "$GITHUB_REF_NAME" rollgate-*.tgz --verify-tag "$kind" \
  --title "$GITHUB_REF_NAME" --notes-file "$notes"
rm "$notes"
