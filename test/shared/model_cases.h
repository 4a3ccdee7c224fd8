// The cases that are explored under each memory model, with a kill anywhere.
#pragma once

#include <string>
#include <vector>

#include "shared/model.h"

namespace rollgate::testing {

/// Each has `kills` = 1.
const std::vector<Case>& ModelCases();

/// The case of that name. Throws if there is none.
const Case& CaseNamed(const std::string& name);

}  // namespace rollgate::testing
