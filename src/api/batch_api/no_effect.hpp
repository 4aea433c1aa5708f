// Lists the members of Batch's containers that jobs keep and describe, but that have no effect on
// this server. Members that a user would rely on are rejected instead (container.cpp).
#pragma once

#include "operations/no_effect.hpp"

namespace trainyard::api::batch_api {

inline constexpr NoEffect kContainerNoEffect[] = {
    {"executionRoleArn", "images are pulled with the logins of the server's config"},
    {"networkConfiguration",
     "a host reaches the outside through its machine, without an address there"},
    {"fargatePlatformConfiguration", "this server has one platform"},
    {"runtimePlatform", "hosts have the processor and the system of their machine"},
    {"instanceType", "hosts are placed by their resource requirements"},
    {"linuxParameters.swappiness", "containers have no swap"},
};

}  // namespace trainyard::api::batch_api
