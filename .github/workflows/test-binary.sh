# Tests what was built, with what the system has: the setup of all suites takes clang, libFuzzer and Spin.
set -eu
node scripts/setup.mjs --for=files
node scripts/test.mjs --all --only=core,jest,serial,types
