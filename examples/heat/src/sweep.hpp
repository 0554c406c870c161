#pragma once

// What one time step needs to know of the plate, in units where density and heat capacity are 1.
struct Plate {
    int rows;
    int cols;
    double dx;       // distance of two grid points
    double dt;       // length of a time step
    double water;    // temperature of the boiling water around the plate
    double cooling;  // heat that the water takes from a point, per cube of the difference in temperature
};

// One explicit time step of heat conduction in a plate of varying conductivity that is quenched in boiling water.
// Reads the temperatures `u` and the conductivities `k`, writes the interior of `next`; the edge is held fixed.
void sweep(const Plate& plate, const double* u, const double* k, double* next);
