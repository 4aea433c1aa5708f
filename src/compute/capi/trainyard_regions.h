// The former name of trainyard_local_sgd.h, until the next version.
#pragma once

#include "capi/trainyard_local_sgd.h"
