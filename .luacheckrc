-- What luacheck takes for granted: the Lua 5.1 of a Redis server and what it puts beside it.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "struct", "bit", "cjson", "cmsgpack" }
max_line_length = 100
