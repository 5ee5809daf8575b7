/// Little CMS' functions, for the files of this boundary.
///
/// It is not linked, but loaded for the first conversion by a profile, which most runs never need.
/// No call here may use a function of it by its own name; it would not link.
#pragma once

#include "ccolour.h"

#include <lcms2.h>
#include <lcms2_plugin.h>

#pragma clang assume_nonnull begin

#define CCOLOUR_LIBRARY "liblcms2.so.2"

/// Every function used here, without the `cms` prefix.
#define CCOLOUR_FUNCTIONS(FUNCTION) \
    FUNCTION(BuildParametricToneCurve) \
    FUNCTION(CloseProfile) \
    FUNCTION(CreateContext) \
    FUNCTION(CreateGrayProfileTHR) \
    FUNCTION(CreateRGBProfileTHR) \
    FUNCTION(CreateTransformTHR) \
    FUNCTION(Create_sRGBProfileTHR) \
    FUNCTION(DeleteContext) \
    FUNCTION(DeleteTransform) \
    FUNCTION(DoTransform) \
    FUNCTION(EvalToneCurveFloat) \
    FUNCTION(FreeToneCurve) \
    FUNCTION(GetEncodedCMMversion) \
    FUNCTION(OpenProfileFromMemTHR)

/// The loaded functions, typed by the header; all set, or none before loading or after a failure.
struct ccolour_functions {
#define CCOLOUR_MEMBER(name) __typeof__(cms##name) *_Nullable name;
    CCOLOUR_FUNCTIONS(CCOLOUR_MEMBER)
#undef CCOLOUR_MEMBER
};

/// Written by `ccolour_load` only, which runs before anything is created.
extern struct ccolour_functions ccolour_functions __attribute__((visibility("hidden")));

#pragma clang assume_nonnull end
