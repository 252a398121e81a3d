; Light in a straight waveguide: 2D FDTD, 100 steps, halos of four sides.
(set! geometry-lattice (make lattice (size 32 32 no-size)))
(set! geometry (list (make block (center 0 0) (size infinity 1 infinity)
  (material (make dielectric (epsilon 12))))))
(set! sources (list (make source (src (make continuous-src (frequency 0.15)))
  (component Ez) (center -10 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 10)
(run-until 5)
