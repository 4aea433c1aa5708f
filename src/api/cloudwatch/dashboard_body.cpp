#include "cloudwatch/dashboard_body.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"

namespace trainyard::api::cloudwatch {
namespace {

constexpr std::string_view kWidgetTypes[] = {"alarm", "custom", "explorer",
                                             "log",   "metric", "text"};
constexpr int64_t kGridColumns = 24, kWidgetRowsMax = 1000;

class BodyChecker {
 public:
  BodyCheck check(std::string_view body) {
    const auto json = parse_json(body);
    if (!json || !json->is_object()) {
      error("", "It is not a JSON object");
      return std::move(check_);
    }
    if (!json->contains("widgets")) {
      error("", "Should have required property 'widgets'");
      return std::move(check_);
    }
    const Json& widgets = (*json)["widgets"];
    if (!widgets.is_array()) {
      error("/widgets", "Should be array");
    } else if (widgets.size() > kWidgetsMax) {
      error("/widgets", "Should NOT have more than " + std::to_string(kWidgetsMax) + " items");
    } else {
      for (size_t i = 0; i < widgets.size(); ++i)
        check_widget(widgets[i], "/widgets/" + std::to_string(i));
    }
    return std::move(check_);
  }

 private:
  static void add(std::vector<BodyFault>& to, std::string path, std::string message) {
    if (to.size() < kFaultsMax) to.push_back({std::move(path), std::move(message)});
  }
  void error(std::string path, std::string message) {
    add(check_.errors, std::move(path), std::move(message));
  }
  void warn(std::string path, std::string message) {
    add(check_.warnings, std::move(path), std::move(message));
  }

  void check_number(const Json& widget, const std::string& path, const char* member, int64_t least,
                    int64_t most) {
    const auto found = widget.find(member);
    if (found == widget.end()) return;
    const std::string place = path + "/" + member;
    if (!found->is_number_integer()) return error(place, "Should be integer");
    // An unsigned number beyond int64_t is negative here.
    const auto value = found->get<int64_t>();
    if (value < least) error(place, "Should be >= " + std::to_string(least));
    if (value > most) error(place, "Should be <= " + std::to_string(most));
  }

  void check_widget(const Json& widget, const std::string& path) {
    if (!widget.is_object()) return error(path, "Should be object");
    const auto type = widget.find("type");
    if (type == widget.end() || !type->is_string())
      return error(path, "Should have required property 'type'");
    const auto& name = type->get_ref<const std::string&>();
    const bool known = std::ranges::find(kWidgetTypes, name) != std::end(kWidgetTypes);
    if (!known) warn(path + "/type", "The widget type is unknown and is not shown");
    check_number(widget, path, "x", 0, kGridColumns - 1);
    check_number(widget, path, "y", 0, INT64_MAX);
    check_number(widget, path, "width", 1, kGridColumns);
    check_number(widget, path, "height", 1, kWidgetRowsMax);
    const auto properties = widget.find("properties");
    if (properties == widget.end())
      return error(path, "Should have required property 'properties'");
    if (!properties->is_object()) return error(path + "/properties", "Should be object");
    check_properties(name, *properties, path + "/properties");
  }

  void check_properties(const std::string& type, const Json& properties, const std::string& path) {
    const auto require = [&](const char* member, bool (Json::*is)() const noexcept,
                             const char* kind) {
      const auto found = properties.find(member);
      if (found == properties.end())
        error(path, "Should have required property '" + std::string(member) + "'");
      else if (!((*found).*is)())
        error(path + "/" + member, "Should be " + std::string(kind));
    };
    if (type == "text") require("markdown", &Json::is_string, "string");
    if (type == "alarm") require("alarms", &Json::is_array, "array");
    if (type == "log") require("query", &Json::is_string, "string");
    if (type == "metric" && !properties.contains("metrics") && !properties.contains("annotations"))
      error(path, "Should have required property 'metrics'");
    if (type == "metric" && properties.contains("metrics") && !properties["metrics"].is_array())
      error(path + "/metrics", "Should be array");
    if (type == "metric" && !properties.contains("region"))
      warn(path, "Without a region, the widget shows metrics of the region of the request");
  }

  BodyCheck check_;
};

}  // namespace

BodyCheck check_body(std::string_view body) { return BodyChecker().check(body); }

}  // namespace trainyard::api::cloudwatch
