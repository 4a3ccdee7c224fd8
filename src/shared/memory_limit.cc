// Finds this process's control group of the memory controller and reads the limits from there up.
//
// Formats: proc(5), cgroups(7), and the kernel's admin-guide/cgroup-v2.rst and
// cgroup-v1/memory.rst.
#include "shared/memory_limit.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <vector>

#include "shared/file.h"

namespace rollgate::shared {
namespace {

/// The names of one version of control groups. Numbers in files include the groups below.
struct Version {
  std::string_view file_system;
  std::string_view controller;  ///< empty if all share one hierarchy
  std::string_view limit;
  std::string_view usage;
  std::array<std::string_view, 2> page_cache;  ///< lines of memory.stat
};
constexpr Version kVersion1 = {"cgroup",
                               "memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               {"total_active_file ", "total_inactive_file "}};
constexpr Version kVersion2 = {
    "cgroup2", "", "memory.max", "memory.current", {"active_file ", "inactive_file "}};

/// Kept free: in a group at its limit, the next allocation kills the process.
constexpr std::uint64_t kMostKept = 16 << 20;
constexpr std::uint64_t kKeptPart = 16;

struct Mount {
  std::string root;   ///< the group that is mounted
  std::string point;  ///< where, without system_root
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool Has(std::string_view list, std::string_view item) {
  const auto items = Split(list, ',');
  return std::ranges::find(items, item) != items.end();
}

/// None for anything but a number, such as `max`; spaces may precede it, and a unit may follow.
std::optional<std::uint64_t> NumberIn(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = end == text.data() + text.size() || *end == '\n' || *end == ' ';
  return error == std::errc() && is_whole ? std::optional(number) : std::nullopt;
}

/// The number in the line that begins with `name`.
std::optional<std::uint64_t> NumberAfter(std::string_view name, std::string_view text) {
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with(name)) return NumberIn(line.substr(name.size()));
  }
  return std::nullopt;
}

/// A path in mountinfo, where separators are a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  std::string path;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const std::string_view digits = text.substr(std::min(at + 1, text.size()), 3);
    if (text[at] == '\\' && digits.size() == 3 &&
        std::from_chars(digits.data(), digits.data() + 3, value, 8).ptr == digits.data() + 3) {
      path += static_cast<char>(value);
      at += 3;
    } else {
      path += text[at];
    }
  }
  return path;
}

/// Finds where the memory controller's groups are mounted. A line: id, parent, device, root, mount
/// point, options, optional fields, "-", type, source, superblock options.
std::optional<Mount> FindMount(std::string_view mountinfo, const Version& version) {
  for (const std::string_view line : Split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = Split(line.substr(0, dash), ' ');
    const auto after = Split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || after[0] != version.file_system) continue;
    if (!version.controller.empty() && !Has(after[2], version.controller)) continue;
    return Mount{Unescape(before[3]), Unescape(before[4])};
  }
  return std::nullopt;
}

/// Finds this process's group. A line: number, controllers (none in version 2), path.
std::optional<std::string> FindGroup(std::string_view groups, const Version& version) {
  for (const std::string_view line : Split(groups, '\n')) {
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_it =
        version.controller.empty() ? controllers.empty() : Has(controllers, version.controller);
    if (is_it) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

/// Empty for the top, and for a group outside of what is mounted, as in containers.
std::string PathBelow(const Mount& mount, std::string group) {
  if (mount.root != "/") {
    const bool is_below = group.starts_with(mount.root) &&
                          (group.size() == mount.root.size() || group[mount.root.size()] == '/');
    if (!is_below) return "";
    group.erase(0, mount.root.size());
  }
  if (group.find("/..") != std::string::npos) return "";
  return group == "/" ? "" : group;
}

std::optional<MemoryLimit> LimitOf(const std::string& group, const Version& version) {
  const std::string file = group + '/' + std::string(version.limit);
  const std::optional<std::uint64_t> limit = NumberIn(ReadText(file).value_or(""));
  const auto usage = NumberIn(ReadText(group + '/' + std::string(version.usage)).value_or(""));
  if (!limit || !usage) return std::nullopt;
  // Page cache can be dropped. It does not include files in memory (tmpfs).
  std::uint64_t page_cache = 0;
  const std::string statistics = ReadText(group + "/memory.stat").value_or("");
  for (const std::string_view name : version.page_cache) {
    page_cache += NumberAfter(name, statistics).value_or(0);
  }
  const std::uint64_t used = *usage - std::min(*usage, page_cache);
  return MemoryLimit{*limit, *limit - std::min(*limit, used),
                     std::min(*limit / kKeptPart, kMostKept), file, "the container's memory limit"};
}

std::optional<MemoryLimit> LimitOfHost(const std::string& system_root) {
  const std::string file = system_root + "/proc/meminfo";
  const std::string text = ReadText(file).value_or("");
  const auto total = NumberAfter("MemTotal:", text);  // in KiB
  const auto available = NumberAfter("MemAvailable:", text);
  if (!total || !available) return std::nullopt;
  const std::uint64_t bytes = *total * 1024;
  return MemoryLimit{bytes, *available * 1024, std::min(bytes / kKeptPart, kMostKept), file,
                     "the host's memory"};
}

}  // namespace

std::optional<MemoryLimit> TightestMemoryLimit(const std::string& system_root) {
  const std::optional<std::string> groups = ReadText(system_root + "/proc/self/cgroup");
  const std::optional<std::string> mountinfo = ReadText(system_root + "/proc/self/mountinfo");
  std::optional<MemoryLimit> tightest = LimitOfHost(system_root);
  if (!groups || !mountinfo) return tightest;
  for (const Version* version : {&kVersion1, &kVersion2}) {
    const std::optional<Mount> mount = FindMount(*mountinfo, *version);
    const std::optional<std::string> group = FindGroup(*groups, *version);
    if (!mount || !group) continue;
    const std::string top = system_root + mount->point;
    std::string folder = top + PathBelow(*mount, *group);
    for (;;) {
      const std::optional<MemoryLimit> limit = LimitOf(folder, *version);
      if (limit && (!tightest || limit->Usable() < tightest->Usable())) tightest = limit;
      if (folder.size() <= top.size()) break;
      folder.erase(folder.rfind('/'));
    }
  }
  return tightest;
}

}  // namespace rollgate::shared
