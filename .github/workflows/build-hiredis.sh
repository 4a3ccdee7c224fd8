# Builds hiredis from the sources of $HIREDIS_COMMIT and installs it below /usr/local.
set -eu
folder=$(mktemp -d)
git init -q "$folder"
git -C "$folder" fetch -q --depth 1 https://github.com/redis/hiredis.git "$HIREDIS_COMMIT"
git -C "$folder" checkout -q FETCH_HEAD
make -C "$folder" static pkgconfig install
rm -rf "$folder"
