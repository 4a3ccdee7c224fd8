# Runs .ci/run in a Debian container: a fresh Debian system in it takes root, mounts and a large /dev/shm.
set -eu
docker run --rm --init --privileged --shm-size=1g -v "$PWD:/rollgate" -w /rollgate \
  -e GIT_CONFIG_COUNT=1 -e GIT_CONFIG_KEY_0=safe.directory -e GIT_CONFIG_VALUE_0=/rollgate \
  -e ROLLGATE_PATIENCE node:20-bookworm .ci/run
