#include "objects/testing/suite.hpp"
#include "objects/directory.hpp"
#include "objects/memory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::objects {
namespace {

INSTANTIATE_TEST_SUITE_P(
    , ObjectsSuite,
    testing::Values(Maker{"memory",
                          [](Clock& clock, Random& random) {
                            return Subject{nullptr, make_memory(clock, random)};
                          }},
                    Maker{"directory",
                          [](Clock& clock, Random& random) {
                            auto directory = std::make_shared<os::TemporaryDirectory>();
                            auto opened =
                                open_directory(directory->path() + "/objects", clock, random);
                            EXPECT_TRUE(opened) << opened.error().message;
                            return Subject{directory, std::move(*opened)};
                          }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace trainyard::objects
